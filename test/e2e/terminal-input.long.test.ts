import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cli, isBuilt, programPath } from '../support/cli.js';
import { copyOf, onceFor } from '../support/model.js';
import { isInstalled, runProgram } from '../support/run-program.js';

const terminal = join(import.meta.dirname, '../support/terminal.py');
const hasPython = isInstalled('python3');

const model = onceFor(async () => {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-terminal-'));
	const env = { HOME: folder, MAILCTL_DB: join(folder, 'news.db') };
	for (const words of [
		['engine', 'init', '--sender', 'news@example.com', '--smtp', 'smtp://127.0.0.1:9'],
		['lists', 'create', '--name', 'Readers', '--email-reason', 'r'],
	])
		expect(await cli(words, { env })).toMatchObject({ code: 0 });
	return folder;
});

async function workplace(TERM = 'xterm') {
	const folder = copyOf(await model());
	const env = {
		PATH: process.env['PATH'] ?? '',
		HOME: folder,
		TERM,
		MAILCTL_DB: join(folder, 'news.db'),
	};
	const run = (program: string, words: readonly string[]) => runProgram(program, words, { cwd: folder, env });
	const at = (words: string, [question, keys = '']: readonly string[] = []) => {
		const program = [process.execPath, programPath, ...words.split(' ')];
		const press = question === undefined ? [] : ['--at', question, keys];
		return run('python3', ['-IS', terminal, ...press, ...program]).stdout;
	};
	const mailctl = (words: string) => run(process.execPath, [programPath, ...words.split(' ')]).stdout;
	return { at, mailctl };
}

describe.skipIf(!isBuilt || !hasPython)('a terminal as standard input', () => {
	it.each([
		['subscribers import - -l 1 --rejects r.csv', ''],
		[
			'send --csv - --from news@example.com --subject S --text T --yes --expect-count 3',
			'nothing was sent: standard input was still being read\n',
		],
		['send --to ann@example.com --from news@example.com --subject S --text-file -', ''],
		['lists list --token-stdin --base-url http://127.0.0.1:9', ''],
	])('lets Ctrl-C end the command: mailctl %s', async (words, told) => {
		const shown = (await workplace('dumb')).at(words).replaceAll('\r', '');
		expect(shown).toBe(`email\n^C${told}interrupted\nended 130\n`);
	});
});
