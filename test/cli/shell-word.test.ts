import { expect, it } from 'vitest';
import { shellWord } from '../../src/cli/frame/words.js';
import { runProgram } from '../support/run-program.js';

it.each([
	"it's",
	'a $HOME `id` "b" \\',
	"two\nlines of 'text' \\n",
	'tab\tbell\u0007\u0085',
	'=ls',
	'',
])('mailctl quotes %j so that a shell reads exactly this text', (text) => {
	const word = shellWord(text);
	expect(word).not.toMatch(/\p{Cc}/u);
	const { stdout } = runProgram('bash', ['-c', `printf %s ${word}`], { env: { LC_ALL: 'C.UTF-8' } });
	expect(stdout).toBe(text);
});
