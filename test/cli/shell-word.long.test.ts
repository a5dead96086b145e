// What a hint tells people to paste is taken by a shell as the word it stands for, and does nothing else.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shellWord } from '../../src/cli/frame/command-line.js';
import { isInstalled, runProgram } from '../support/run-program.js';

const taken = (words: readonly string[]) =>
	runProgram('bash', ['-c', `printf '%s\\0' ${words.map(shellWord).join(' ')}`], {
		env: { LC_ALL: 'C.UTF-8', PATH: process.env['PATH'] },
	}).stdout.split('\0');

describe.skipIf(!isInstalled('bash'))('a word of a command', () => {
	it.each([
		'news.db',
		'my news.db',
		"it's",
		'`touch$IFS-it`@x.example',
		'a\nb',
		'a\tb\\n',
		"\u202egnp'.db",
		'',
		'*',
		'~',
		'!x',
	])('%j is what a shell takes', (word) => {
		expect(taken([word, 'end'])).toEqual([word, 'end', '']);
	});

	it('is, whatever is in it', () => {
		const text = fc.string({ unit: 'grapheme', minLength: 1 }).filter((one) => !one.includes('\0'));
		fc.assert(
			fc.property(fc.array(text, { minLength: 20, maxLength: 20 }), (words) => {
				expect(taken(words)).toEqual([...words, '']);
			}),
			{ numRuns: 30 },
		);
	});

	it('shows line breaks and tabs as people know them', () => {
		expect(shellWord("a\nb\tc\r'\\n")).toBe("$'a\\nb\\tc\\r\\'\\\\n'");
	});

	it('shows no control and nothing that turns the line around', () => {
		expect(shellWord('a\x1b[31m\u202eb')).toBe("$'a\\x1b[31m\\U0000202eb'");
	});
});
