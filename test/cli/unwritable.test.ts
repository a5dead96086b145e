// A place that its user may not write: which one it is, why, and what opens it or names another.
import {
	chmodSync,
	chownSync,
	copyFileSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBuilt, programPath } from '../support/cli.js';
import { withheldRight } from '../support/root-rights.js';
import { runProgram } from '../support/run-program.js';

const isRoot = process.getuid?.() === 0;
const canRun = isBuilt && (!isRoot || withheldRight() === null);

/** Another user than root: its own folders are closed to it by their modes, and those of root by their owner. */
const other = isRoot ? 65_534 : Number(process.getuid?.());

let folder: string;
const at = (...names: string[]) => join(folder, ...names);

beforeAll(() => {
	if (!canRun) return;
	// Not below the folder of the tests: another user than root is to reach it.
	folder = mkdtempSync('/tmp/mailctl-closed-');
	for (const name of ['own', 'home', 'data']) mkdirSync(at(name));
	const email = 'email\nada@example.com\nnone\n';
	for (const name of ['people.csv', 'own/people.csv']) writeFileSync(at(name), email);
	for (const one of ['', 'own', 'home', 'data', 'own/people.csv', 'people.csv']) give(at(one));
	mailctl(
		'engine',
		'init',
		'--db',
		at('data', 'news.db'),
		'--sender',
		'news@example.com',
		'--smtp',
		'smtp://127.0.0.1:1',
	);
	mailctl('--db', at('data', 'news.db'), 'lists', 'create', '--name', 'News', '--email-reason', 'asked');
	copyFileSync(at('data', 'news.db'), at('own', 'news.db'));
	give(at('own', 'news.db'));
	chmodSync(at('own', 'news.db'), 0o444);
	chmodSync(at('own'), 0o555);
});

afterAll(() => {
	if (!canRun) return;
	chmodSync(at('own'), 0o755);
	rmSync(folder, { recursive: true });
});

function give(path: string): void {
	if (isRoot) chownSync(path, other, other);
}

/** As that user, with the database that is open to it. */
function mailctl(...words: readonly string[]): { code: number | null; stdout: string; stderr: string } {
	return run(words, {});
}

function run(words: readonly string[], env: Readonly<Record<string, string>>) {
	const as = ['setpriv', '--reuid', String(other), '--regid', String(other), '--clear-groups'];
	const [program = '', ...rest] = [...(isRoot ? as : []), process.execPath, programPath, ...words];
	const { status, stdout, stderr } = runProgram(program, rest, {
		cwd: folder,
		env: { PATH: process.env['PATH'] ?? '', HOME: at('home'), MAILCTL_DB: at('data', 'news.db'), ...env },
	});
	return { code: status, stdout, stderr };
}

describe.skipIf(!canRun)('a folder that its own user may not write', () => {
	it('is opened by a command, or another file is named', () => {
		const tries: [words: string[], path: string][] = [
			[['report', '--save', 'own/x.html'], 'own/x.html'],
			[['subscribers', 'export', 'own/x.csv', '--list', 'News'], 'own/x.csv'],
			[['engine', 'backup', 'own/x.backup'], 'own/x.backup'],
		];
		for (const [words, path] of tries)
			expect(mailctl(...words)).toEqual({
				code: 2,
				stdout: '',
				stderr: `error: ${path} cannot be written: permission denied\nhint: to write there: chmod u+w own\nhint: or name a file in another folder\n`,
			});
	});

	it('takes no rejects file, and --rejects names another', () => {
		expect(mailctl('subscribers', 'import', 'own/people.csv', '--list', 'News')).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: the rejects file own/people.csv.rejects.csv cannot be written: permission denied\nhint: to write there: chmod u+w own\nhint: or --rejects FILE names another place\n',
		});
	});

	it('takes no database, and --db names another', () => {
		expect(mailctl('engine', 'init', '--db', at('own', 'x.db'))).toEqual({
			code: 74,
			stdout: '',
			stderr: `error: cannot create ${at('own', 'x.db')}: permission denied\nhint: to write there: chmod u+w ${at('own')}\nhint: or --db PATH names another place\n`,
		});
	});

	it('takes no settings, and XDG_CONFIG_HOME names another', () => {
		expect(run(['profile', 'add', 'x', '--db', 'x.db'], { XDG_CONFIG_HOME: at('own') })).toEqual({
			code: 78,
			stdout: '',
			stderr: `error: ${at('own', 'mailctl')} cannot be written: permission denied\nhint: to write there: chmod u+w ${at('own')}\nhint: or XDG_CONFIG_HOME names another folder above that of mailctl\n`,
		});
	});
});

it.skipIf(!canRun)('every option that names a file to write says how its folder is opened', () => {
	const send = [
		'send',
		'--from',
		'news@example.com',
		'--to',
		'ada@example.com',
		'--subject',
		'S',
		'--text',
		'T',
	];
	const tries = [
		[...send, '--eml', 'own/x.eml'],
		[...send, '--results', 'own/x.csv', '--yes'],
		['smoke', '--base-url', 'http://127.0.0.1:1', '--report-file', 'own/x.xml', '--reporter', 'junit'],
	];
	for (const words of tries)
		expect(run(words, words[0] === 'smoke' ? { MAILCTL_DB: '' } : {}).stderr).toContain(
			'hint: to write there: chmod u+w own\nhint: or name a file in another folder\n',
		);
});

describe.skipIf(!canRun)('a folder of root', () => {
	it('is told as such, for what is in it and what would be below it', () => {
		const closed = '/ belongs to root, and this user may not write to it';
		expect(mailctl('report', '--save', '/mailctl.html').stderr).toBe(
			`error: /mailctl.html cannot be written: permission denied\nhint: ${closed}; name a file in another folder\n`,
		);
		expect(mailctl('engine', 'init', '--db', '/mailctl/mailctl.db').stderr).toBe(
			`error: cannot create /mailctl/mailctl.db: permission denied\nhint: ${closed}; --db PATH names another place\n`,
		);
	});
});

it.skipIf(!canRun)('a folder that is missing is made by a command, where the one above takes it', () => {
	expect(mailctl('report', '--save', 'no ne/such/x.html')).toEqual({
		code: 2,
		stdout: '',
		stderr:
			"error: no ne/such/x.html cannot be written: there is no folder no ne/such\nhint: mkdir -p 'no ne/such'\nhint: or name a file in another folder\n",
	});
	expect(mailctl('report', '--save', 'people.csv/x.html').stderr).toBe(
		'error: people.csv/x.html cannot be written: people.csv is no folder\n',
	);
});

it.skipIf(!canRun)('a folder that is called like an option is none in the command', () => {
	expect(mailctl('report', '--save=-x/y.svg').stderr).toContain('\nhint: mkdir -p ./-x\n');
});

describe.skipIf(!canRun)('a database that may only be read', () => {
	it('is looked at where a link leads, whose log is the one that counts', () => {
		symlinkSync(at('own', 'news.db'), at('data', 'link.db'));
		expect(mailctl('lists', 'list', '--db', at('data', 'link.db')).stderr).toContain(
			`\nhint: chmod u+w ${at('own', 'news.db')} ${at('own')}\n`,
		);
	});

	it('is told with what opens it and with a way to read a copy', () => {
		const db = at('own', 'news.db');
		const stderr = [
			`error: ${db}: the database file is read-only`,
			'hint: run mailctl as the owner of the database, or make the file, its folder and its disk writable for this user: it keeps a log there even to read',
			`hint: chmod u+w ${db} ${at('own')}`,
			`hint: install -m 600 ${db} COPY.db makes a copy that can be read, by --db COPY.db`,
			'',
		].join('\n');
		for (const words of [['lists', 'list'], ['report'], ['engine', 'backup', 'x.backup']])
			expect(mailctl('--db', db, ...words)).toEqual({ code: 74, stdout: '', stderr });
		expect(existsSync(at('x.backup'))).toBe(false);
	});

	it('can be read as that copy', () => {
		runProgram('install', ['-m', '600', at('own', 'news.db'), at('COPY.db')]);
		give(at('COPY.db'));
		expect(mailctl('--db', at('COPY.db'), 'lists', 'list', '-o', 'name').code).toBe(0);
	});

	it('is one problem for doctor, which has no complaint about its owner beside it', () => {
		const { code, stdout } = mailctl('--db', at('own', 'news.db'), 'doctor', '--offline', '-o', 'json');
		const found = (JSON.parse(stdout) as { level: string }[]).filter(({ level }) => level !== 'skipped');
		expect({ code, bad: found.filter(({ level }) => level !== 'ok') }).toEqual({
			code: 11,
			bad: [
				{
					check: 'database.file',
					level: 'problem',
					message: `${at('own', 'news.db')}: the database file is read-only`,
					fix: expect.stringContaining(`\nchmod u+w ${at('own', 'news.db')} ${at('own')}\ninstall -m 600 `),
				},
			],
		});
	});
});
