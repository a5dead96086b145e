/** Questions on real terminals: each way to leave them restores the terminal, and guides print working commands. */
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { isBuilt, programPath } from '../support/cli.js';
import { copyOf, onceFor } from '../support/model.js';
import { isInstalled, runProgram } from '../support/run-program.js';

const terminal = join(import.meta.dirname, '../support/terminal.py');
const canRun = isBuilt && isInstalled('python3');

type Step = readonly [shown: string, keys: string];

const down = '\\x1b[B';
const back = '\\x7f';

interface Ended {
	shown: string;
	raw: string;
	/** `130`, followed by any changed setting of the terminal. */
	end: string;
}

function workplace(folder = mkdtempSync(join(tmpdir(), 'mailctl-terminal-'))) {
	const db = join(folder, 'news.db');
	const env = { PATH: process.env['PATH'] ?? '', HOME: folder, TERM: 'xterm', TZ: 'UTC' };
	const options = { cwd: folder, env: { ...env, MAILCTL_DB: db } };
	const mailctl = (...words: readonly string[]) => {
		const { status, stdout, stderr } = runProgram(process.execPath, [programPath, ...words], options);
		expect(stderr === '' || status === 0 ? status : stderr).toBe(0);
		return stdout;
	};
	const at = (columns: number, words: readonly string[], steps: readonly Step[], where = options): Ended => {
		const typed = steps.flatMap(([shown, keys]) => ['--at', shown, keys]);
		const program = [process.execPath, programPath, ...words];
		const { stdout } = runProgram(
			'python3',
			['-IS', terminal, '--columns', String(columns), ...typed, ...program],
			where,
		);
		const raw = stdout.replaceAll('\r', '');
		const shown = stripVTControlCharacters(raw);
		return { raw, shown, end: /ended (.*)\n$/.exec(shown)?.[1] ?? shown };
	};
	/** Runs in a shell the command that a guide printed after the words `behind`. */
	const asPrinted = (shown: string, behind: string, more = '') => {
		const command = new RegExp(`${behind}:\\s(mailctl .*)\n`).exec(shown)?.[1] ?? shown;
		const program = `mailctl() { '${process.execPath}' '${programPath}' "$@"; }; ${command} ${more}`;
		return { command, ...runProgram('sh', ['-c', program], options) };
	};
	return { folder, db, options, mailctl, at, asPrinted, env };
}

function filled() {
	return workplace(copyOf(model()));
}

const model = onceFor(() => {
	const { mailctl, folder } = workplace();
	writeFileSync(join(folder, 'w.txt'), 'Hi');
	mailctl('engine', 'init', '--sender', 'news@example.com', '--smtp', 'smtp://127.0.0.1:9');
	mailctl('lists', 'create', '--name', 'Readers', '--email-reason', 'r');
	mailctl(
		'lists',
		'create',
		'--name',
		'週刊ニュースレター 🎉 of a very long name indeed',
		'--email-reason',
		'r',
	);
	mailctl('subscribers', 'create', '-l', '1', '--email', 'ann@example.com', '--name', 'Ann');
	mailctl('fields', 'create', '--variable', 'city', '--name', 'City');
	mailctl('templates', 'create', '--name', 'Welcome', '--text-file', 'w.txt');
	mailctl('engine', 'tokens', 'create', '--name', 'shop');
	return folder;
});

/** Returns every row of every table. */
function rowsOf(file: string): Record<string, unknown[]> {
	const db = new Database(file, { readonly: true });
	const tables = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
	const rows = tables.map((name) => [name, db.prepare(`SELECT * FROM "${name}"`).all()]);
	db.close();
	return Object.fromEntries(rows);
}

describe.skipIf(!canRun)('a confirmation that the user refuses', () => {
	const place = () => filled();
	const severe: readonly (readonly [string, string])[] = [
		['lists delete 1', 'Type Readers to confirm:'],
		['subscribers erase ann@example.com', 'Type ann@example.com to confirm:'],
	];
	const mild: readonly (readonly [string, string])[] = [
		['fields delete city', '(y/N)'],
		['engine tokens revoke shop', '(y/N)'],
		['engine migrate --to other.db', '(y/N)'],
	];
	it.each([...severe, ...mild])('leaves data and terminal unchanged: mailctl %s', (words, question) => {
		const { db, at } = place();
		const before = rowsOf(db);
		const answers = question === '(y/N)' ? ['n\\r', '\\r'] : ['\\r'];
		for (const keys of [...answers, '\\x03', '\\x04'])
			expect(at(80, words.split(' '), [[question, keys]]).end).toBe('130');
		if (question !== '(y/N)') {
			const twice: Step[] = [
				[question, 'Other\\r'],
				['"Other" is not "', '\\r'],
			];
			expect(at(80, words.split(' '), twice).end).toBe('130');
		}
		expect(at(40, words.split(' '), [[question, 'hang-up']]).end).toBe('-1');
		expect(rowsOf(db)).toEqual(before);
	});
});

describe.skipIf(!canRun)('a command that the user cancels at its second question', () => {
	const late: readonly (readonly [string, readonly Step[]])[] = [
		[
			'subscribers erase',
			[
				['E-mail address:', 'ann@example.com\\r'],
				['Type ann@example.com to confirm:', ''],
			],
		],
		[
			'engine migrate',
			[
				['DATABASE):', 'news.db\\r'],
				['that is the old database', `${back.repeat('news.db'.length)}other.db\\r`],
				['(y/N)', ''],
			],
		],
	];
	it.each(late)('leaves data and terminal unchanged: mailctl %s', (words, steps) => {
		const { db, folder, at } = filled();
		writeFileSync(join(folder, 'people.csv'), 'email\ncy@example.com\n');
		const before = rowsOf(db);
		const files = readdirSync(folder).sort();
		for (const [columns, keys] of [
			[40, '\\x03'],
			[80, '\\x04'],
		] as const) {
			const left = steps.map(([shown, typed]): Step => [shown, typed === '' ? keys : typed]);
			expect(at(columns, words.split(' '), left).end).toBe('130');
		}
		expect(rowsOf(db)).toEqual(before);
		expect(readdirSync(folder).sort()).toEqual(files);
	});
});

describe.skipIf(!canRun)('a question that is ended by a signal', () => {
	it.each([
		['SIGINT', '130'],
		['SIGTERM', '143'],
	])('restores the terminal settings: %s', (name, end) => {
		const { at } = filled();
		expect(at(80, ['lists', 'create'], [['Name of the list:', `kill ${name}`]]).end).toBe(end);
		expect(at(80, ['lists', 'get'], [['❯ Readers', `kill ${name}`]]).end).toBe(end);
	});
});

describe.skipIf(!canRun)('the editor for a text', () => {
	/**
	 * An editor that reads a line and handles Ctrl-C itself; the line `fail` makes it exit like :cq of vi. It waits
	 * with `select`, because Python delays the handler of a signal that arrives just before a read.
	 */
	const editor = [
		'import os, select, signal, sys',
		"say = lambda text: os.write(1, (text + '\\n').encode())",
		'heard, waker = os.pipe()',
		'os.set_blocking(waker, False)',
		'signal.set_wakeup_fd(waker)',
		'signal.signal(signal.SIGINT, lambda *_: None)',
		"say('editing ' + repr(open(sys.argv[-1]).read()))",
		"typed = ''",
		"while typed == '':",
		'    if heard in select.select([0, heard], [], [])[0]:',
		'        os.read(heard, 1)',
		"        say('heard Ctrl-C')",
		'    else:',
		'        typed = os.read(0, 4096).decode()',
		"open(sys.argv[-1], 'a').write(typed)",
		"sys.exit(1 if typed == 'fail\\n' else 0)",
	].join('\n');
	const place = (command: (file: string) => string) => {
		const made = filled();
		const file = join(made.folder, 'editor.py');
		writeFileSync(file, editor);
		const env = { ...made.options.env, EDITOR: command(file), TMPDIR: made.folder };
		const send = ['send', '--to', 'ann@example.com', '--from', 'news@example.com', '--subject', 'Hi'];
		return {
			...made,
			write: (steps: readonly Step[]) =>
				made.at(80, send, [['❯ a text, written', '\\r'], ...steps], { ...made.options, env }),
		};
	};
	const left: Step = ['What now?', '\\x03'];

	it('is started by a shell, and handles Ctrl-C itself', () => {
		const { write } = place((file) => `python3 -IS '${file}'`);
		const { shown, end } = write([
			['which editor?', '\\r'],
			["editing ''", '\\x03'],
			['heard Ctrl-C', '\\x03'],
			['heard Ctrl-C', 'Hello\\r'],
			left,
		]);
		expect(shown).toContain('\n  Hello\n');
		expect(end).toBe('130');
		expect(shown.replaceAll(/\s+/g, ' ')).toContain(': write the text, then save and quit editing');
	});
});

describe.skipIf(!canRun).each([40, 80, 120])('in a terminal of %i columns', (columns) => {
	it('"subscribers import" prints a command that repeats the import without questions', () => {
		const { at, asPrinted, folder } = filled();
		writeFileSync(join(folder, "it's.csv"), 'Kontakt,Umsatz (€)\nbob@example.com,12\n');
		const { shown, end } = at(
			columns,
			['subscribers', 'import', "it's.csv", '-l', '1'],
			[['❯ a new field, umsatz', '\\r']],
		);
		expect(end).toBe('0');
		const again = asPrinted(shown, 'the same without questions');
		expect(again).toMatchObject({ status: 0, stdout: expect.stringContaining('1') });
		expect(again.command).toContain(`'Umsatz (€)=umsatz'`);
	});

	it('"send" prints a command on Ctrl-C, and running that command creates the campaign', () => {
		const { at, asPrinted, mailctl, folder } = filled();
		writeFileSync(join(folder, "it's.txt"), 'Hi #name#\n');
		const { shown, end } = at(
			columns,
			['send'],
			[
				['To whom?', '\\r'],
				['Which list:', 'read'],
				['read ❯ Readers (1 active subscriber) ↑↓', '\\r'],
				['❯ a text, written', down],
				['❯ a text from a file', '\\r'],
				['File:', 'it.txt\\r'],
				['no such file', `${back.repeat('.txt'.length)}'s.txt\\r`],
				['Subject:', "What's new, $HOME\\r"],
				['❯ send it to 1 recipient', '\\x03'],
			],
		);
		expect(end).toBe('130');
		expect(mailctl('campaigns', 'list', '-o', 'json')).toBe('[]\n');
		const { status, stderr } = asPrinted(shown, 'continue with', '--yes --expect-count 1');
		expect(status === 14 ? 14 : stderr).toBe(14);
		const [campaign] = JSON.parse(mailctl('campaigns', 'list', '-o', 'json'));
		expect(campaign).toMatchObject({ subject: "What's new, $HOME" });
	});
});
