// What other people wrote reaches a terminal, a log or a spreadsheet through this program.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { programPath } from '../support/cli.js';
import { runProgram } from '../support/run-program.js';

const folder = mkdtempSync(join(tmpdir(), 'mailctl-hostile-'));
const env = {
	PATH: process.env['PATH'] ?? '',
	HOME: folder,
	TERM: 'xterm',
	MAILCTL_DB: join(folder, 'news.db'),
};
const name = 'A\x1b[31mnn\x1b]0;owned\x07\x9b5m\u202egnp.exe\u200b\tB\nC';
const cleaned = 'A\\x1b[31mnn\\x1b]0;owned\\x07\\x9b5m\\u202egnp.exe\\u200b\\tB\\nC';

function mailctl(argv: readonly string[], input = '') {
	const { stdout, stderr, status } = runProgram(process.execPath, [programPath, ...argv], {
		env,
		input,
	});
	return { stdout, stderr, status };
}

beforeAll(() => {
	mailctl(['engine', 'init', '--sender', 'news@example.com']);
	mailctl(['lists', 'create', '--name', name.replace(/[\t\n]/g, ''), '--email-reason', 'r']);
	mailctl(['fields', 'create', '--variable', 'city', '--name', 'City']);
	const made = mailctl([
		'subscribers',
		'create',
		'-l',
		'1',
		'--email',
		'ann@example.com',
		'--name',
		name,
		'--meta',
		`city=${name}`,
	]);
	expect(made.status).toBe(0);
});

describe('a name with escape sequences', () => {
	it.each(['table', 'wide', 'tsv', 'markdown'])('is spelled out in %s', (format) => {
		const { stdout, stderr } = mailctl(['subscribers', 'list', '-l', '1', '-o', format]);
		const shown =
			format === 'markdown' ? stdout.replaceAll('\\\\', '\\').replaceAll(/\\([[\]_])/g, '$1') : stdout;
		expect(shown).toContain(cleaned);
		expect(`${stdout}${stderr}`).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e]/);
	});

	it('is exact in JSON, NDJSON and CSV', () => {
		const list = ['subscribers', 'list', '-l', '1', '-o'];
		expect((JSON.parse(mailctl([...list, 'json']).stdout) as { name: string }[])[0]?.name).toBe(name);
		expect((JSON.parse(mailctl([...list, 'ndjson']).stdout) as { name: string }).name).toBe(name);
		expect(mailctl([...list, 'csv']).stdout).toContain(`"${name}"`);
	});

	it('is spelled out in questions and errors', () => {
		const listName = name.replace(/[\t\n]/g, '');
		for (const argv of [
			['subscribers', 'get', name, '-l', '1'],
			['lists', 'delete', '1'],
			['subscribers', 'delete', '1', '-l', '1'],
			['lists', 'get', `${listName}x`],
			['fields', 'get', name],
			['send', '--from', name, '--to', 'a@example.com', '--subject', 'S', '--text', 'T', '--no-wait'],
			[name],
			['lists', `--${name}`],
		]) {
			const { stderr, status } = mailctl(argv);
			expect(status).not.toBe(0);
			expect(stderr).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e]/);
		}
	});

	it('survives an import into a file of rejects byte for byte', () => {
		const path = join(folder, 'people.csv');
		writeFileSync(path, `email,name\nbad,"${name}"\n`);
		const run = mailctl(['subscribers', 'import', path, '-l', '1', '-o', 'json']);
		expect(JSON.parse(run.stdout)).toMatchObject({ read: 1, rejected: 1 });
		const again = mailctl(['subscribers', 'import', `${path}.rejects.csv`, '-l', '1', '-o', 'json', '-n']);
		expect(JSON.parse(again.stdout)).toMatchObject({ read: 1, created: 0, rejected: 1 });
		expect(readFileSync(`${path}.rejects.csv`, 'utf8')).toContain(`bad,"${name}"`);
	});
});
