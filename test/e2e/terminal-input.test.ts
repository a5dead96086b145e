/** A table that is typed at a terminal: Ctrl-C ends the process, without a key pressed afterwards. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isBuilt, programPath } from '../support/cli.js';

const terminal = join(import.meta.dirname, '../support/terminal.py');
const hasPython = spawnSync('python3', ['--version']).status === 0;

function workplace() {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-terminal-'));
	const env = {
		PATH: process.env['PATH'] ?? '',
		HOME: folder,
		TERM: 'dumb',
		MAILCTL_DB: join(folder, 'news.db'),
	};
	const run = (program: string, words: readonly string[]) =>
		spawnSync(program, words, { cwd: folder, env, encoding: 'utf8' });
	const smtp = ['--sender', 'news@example.com', '--smtp', 'smtp://127.0.0.1:9'];
	expect(run(process.execPath, [programPath, 'engine', 'init', ...smtp])).toMatchObject({ status: 0 });
	const list = ['lists', 'create', '--name', 'Readers', '--email-reason', 'r'];
	expect(run(process.execPath, [programPath, ...list])).toMatchObject({ status: 0 });
	return (words: string) =>
		run('python3', [terminal, process.execPath, programPath, ...words.split(' ')]).stdout;
}

describe.skipIf(!isBuilt || !hasPython)('standard input that is a terminal', () => {
	it.each([
		'subscribers import - -l 1 --rejects r.csv',
		'send --csv - --from news@example.com --subject S --text T --yes --expect-count 3',
		'send --to ann@example.com --from news@example.com --subject S --text-file -',
		'lists list --token-stdin --base-url http://127.0.0.1:9',
	])('is let go of when Ctrl-C ends mailctl %s', (words) => {
		const shown = workplace()(words);
		expect(shown.replaceAll('\r', '')).toBe('email\n^Cinterrupted\nended 130\n');
	}, 60_000);
});
