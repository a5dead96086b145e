/** `engine migrate`: it copies a database completely, and moving it back gives the same bytes. */
import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { Interrupted } from '../../src/cli/frame/errors.js';
import type { Mark } from '../../src/store/moving.js';
import { MovablePostgres } from '../../src/store/postgres/moving.js';
import { schemaVersion } from '../../src/store/sqlite/migrations.js';
import { MovableSqlite } from '../../src/store/sqlite/moving.js';
import { type CliResult, cli } from '../support/cli.js';
import { ask, describePostgres } from '../support/postgres.js';
import { errorOf, makeProject, type Project } from '../support/project.js';
import { startSmtpSink } from '../support/smtp-sink.js';

const hostile = [
	...['{NULL,"a"}', 'NULL', '', '\\', '\\\\x41', '"', "'; DROP TABLE lists; --", '$1 ? $2', '\t\r\n\v'],
	...[
		'𝔘𝔫𝔦 👩‍👩‍👧‍👦 é e\u0301',
		'\u202eabc\u202c',
		'\u2028\u2029\ufeff',
		'漢字かな',
		'\u0001\u001f\u007f',
		'\uffff',
	],
];

/** Returns every row of every table that a move copies, and the last ids. */
function contentOf(file: string): Record<string, unknown[]> {
	const db = new Database(file, { readonly: true });
	const names = db
		.prepare<[], string>(
			`SELECT name FROM sqlite_schema
			WHERE type = 'table' AND name NOT IN ('migrations', 'processes', 'clock', 'sqlite_stat1')
			ORDER BY name`,
		)
		.pluck()
		.all();
	const rows = (name: string) =>
		(db.prepare(`SELECT * FROM "${name}"`).raw().all() as unknown[][])
			.map((row) =>
				JSON.stringify(row.map((value) => (Buffer.isBuffer(value) ? value.toString('hex') : value))),
			)
			.sort();
	const content = Object.fromEntries(names.map((name) => [name, rows(name)]));
	db.close();
	return content;
}

const sending = [
	...['send', '--from', 'news@example.com', '--to', 'a@example.org', '--subject', 'S', '--text', 'Hi'],
	'--no-wait',
];

async function fill(project: Project): Promise<void> {
	const { json, file } = project;
	await json(['lists', 'create', '--name', 'News 漢', '--email-reason', 'You asked.']);
	await json(['fields', 'create', '--variable', 'city', '--name', 'Stadt']);
	for (const [n, text] of hostile.entries())
		await json([
			...['subscribers', 'create', '-l', '1', '--email', `p${n}@example.org`, '--name', `N${text.trim()}`],
			...['--meta-json', JSON.stringify({ city: n === 0 ? 1e15 : text })],
		]);
	await json(['subscribers', 'deactivate', 'p1@example.org', '-l', '1']);
	const html = await file('t.html', hostile.join('<br>'));
	await json(['templates', 'create', '--name', 'T #name#', '--html-file', html]);
	await json(['engine', 'tokens', 'create', '--name', 'shop', '--scope', 'send']);
	await json(['engine', 'dkim', 'add', '--domain', 'example.com', '--selector', 's1']);
	const hook = ['--url', 'https://example.com/h', '--type', 'HARDBOUNCED', '--login', 'me'];
	await json(['webhooks', 'create', ...hook, '--password-file', await file('pass', 'g\\"heim')]);
	await json(['suppressions', 'add', 'no@example.org']);
	await json(['subscribers', 'erase', 'p3@example.org', '--confirm', 'p3@example.org']);
	const attached = await file('a.bin', Buffer.from([0, 1, 92, 34, 255]));
	await json([...sending, '--attach', attached, '--idempotency-key', 'k1']);
	await json(['lists', 'create', '--name', 'Gone', '--email-reason', 'x']);
	await json(['lists', 'delete', 'Gone', '--confirm', 'Gone']);
}

async function outputs(run: (argv: readonly string[]) => Promise<CliResult>): Promise<string[]> {
	const calls = [
		...['subscribers export -l 1', 'messages list --all -o json', 'report --last 3d -o json'],
		...['webhooks list -o json --show-secrets', 'engine settings get -o json', 'engine queue stats -o json'],
	];
	const all: string[] = [];
	for (const argv of calls.map((line) => line.split(' '))) {
		const { code, stdout, stderr } = await run(argv);
		expect({ argv, code, stderr: code === 0 ? '' : stderr }).toEqual({ argv, code: 0, stderr: '' });
		all.push(stdout);
	}
	return all;
}

function fillOld(file: string): void {
	const db = new Database(file);
	db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
		INSERT INTO old_messages (uuid, submission_seq, list_id, to_key)
		SELECT randomblob(16), 1, 1, 'p' || i || '@example.org' FROM n`);
	db.close();
}

it('erasing an address in a moved database leaves no trace of the address in the file', async () => {
	const project = await makeProject();
	await project.json(['lists', 'create', '--name', 'News', '--email-reason', 'x']);
	const rows = Array.from({ length: 3_000 }, (_, n) => `person-${n}@example.org,Name ${n}\n`);
	const table = await project.file('p.csv', `email,name\n${rows.join('')}`);
	await project.json(['subscribers', 'import', table, '--list', 'News']);
	await project.json([
		...['send', '--list', 'News', '--from', 'news@example.com', '--subject', 'Hi', '--text', 'Hi #name#'],
		...['--transactional', '--no-wait', '--yes', '--expect-count', '3000'],
	]);
	const copy = join(project.folder, 'copy.db');
	const run = (...argv: string[]) => cli(argv, { env: { HOME: project.folder } });
	expect(await run('engine', 'migrate', '--from', project.db, '--to', copy, '--yes')).toMatchObject({
		code: 0,
	});
	const people = [7, 500, 1_234, 2_999].map((n) => `person-${n}@example.org`);
	for (const email of people)
		expect(await run('--db', copy, 'subscribers', 'erase', email, '--confirm', email)).toMatchObject({
			code: 0,
		});
	const left = (await readFile(copy)).toString('latin1');
	expect(people.filter((email) => left.includes(email))).toEqual([]);
	expect(left).toContain('person-8@example.org');
});

describePostgres('engine migrate', (server) => {
	const on =
		(project: Project, db: string) =>
		(argv: readonly string[], options = {}) =>
			cli(['--db', db, ...argv], { ...options, env: { HOME: project.folder } });
	const migrate = async (project: Project, from: string, to: string, ...more: string[]) =>
		await cli(['engine', 'migrate', '--from', from, '--to', to, '--yes', '-o', 'json', ...more], {
			env: { HOME: project.folder },
		});
	const moved = async (project: Project, from: string, to: string) => {
		const result = await migrate(project, from, to);
		expect({ code: result.code, stderr: result.code === 0 ? '' : result.stderr }).toEqual({
			code: 0,
			stderr: '',
		});
		return JSON.parse(result.stdout);
	};

	it('copies every byte from SQLite to PostgreSQL and back, and blocks the source database each time', async () => {
		const project = await makeProject();
		await fill(project);
		fillOld(project.db);
		const before = await outputs((argv) => project.run(argv));
		const content = contentOf(project.db);
		const url = await server.createProject();
		const there = await moved(project, project.db, url);
		expect(there).toMatchObject({ from: project.db, kept: 0, replaced: 0 });
		expect(await project.run(['lists', 'list'])).toMatchObject({
			code: 74,
			stderr: expect.stringMatching(/news\.db was moved to postgres:.* at 20.* UTC: use that database/),
		});
		expect(await outputs(on(project, url))).toEqual(before);
		const back = join(project.folder, 'back.db');
		const again = await moved(project, url, back);
		expect(again.tables).toEqual(there.tables);
		expect(contentOf(back)).toEqual(content);
		expect(await outputs(on(project, back))).toEqual(before);
		expect(statSync(back).mode & 0o777).toBe(0o600);
		expect((await on(project, back)(['engine', 'check'])).code).toBe(0);
		expect((await on(project, url)(['lists', 'list'])).stderr).toContain('was moved to');
		expect((await on(project, back)(['doctor', '--offline', '--only', 'database'])).code).toBe(0);
		expect((await on(project, url)(['doctor', '--offline', '--only', 'database'])).code).toBe(11);
	});

	it('does not give a new record the id of a deleted one', async () => {
		const project = await makeProject();
		for (const name of ['One', 'Two', 'Three'])
			await project.json(['lists', 'create', '--name', name, '--email-reason', 'x']);
		await project.json(['lists', 'delete', 'Three', '--confirm', 'Three']);
		const url = await server.createProject();
		await moved(project, project.db, url);
		const make = async (db: string) =>
			JSON.parse(
				(await on(project, db)(['lists', 'create', '--name', 'New', '--email-reason', 'x', '-o', 'json']))
					.stdout,
			);
		expect(await make(url)).toMatchObject({ id: 4 });
		await on(project, url)(['lists', 'delete', '4', '--confirm', 'New']);
		const back = join(project.folder, 'back.db');
		await moved(project, url, back);
		expect(await make(back)).toMatchObject({ id: 5 });
	});

	it('lets an interrupted campaign continue after a move, and sends no mail twice', async () => {
		const sink = await startSmtpSink();
		onTestFinished(() => sink.close());
		const project = await makeProject({ smtp: sink.port });
		await project.json(['lists', 'create', '--name', 'News', '--email-reason', 'x']);
		const people = Array.from({ length: 300 }, (_, n) => `c${n}@example.org\n`);
		const table = await project.file('c.csv', `email\n${people.join('')}`);
		await project.json(['subscribers', 'import', table, '--list', 'News']);
		const until = async (count: number, argv: readonly string[], db: string) => {
			const stop = new AbortController();
			void sink.until(count).then(() => stop.abort(new Interrupted('SIGINT')));
			return await on(project, db)(argv, { interrupts: stop.signal });
		};
		const campaign = [
			...['send', '--list', 'News', '--from', 'news@example.com', '--subject', 'Hi', '--campaign', 'big'],
			...['--text', 'Hello #unsubscribe_url#', '--yes', '--expect-count', '300', '--rate', '200/s'],
		];
		await until(100, campaign, project.db);
		const url = await server.createProject();
		await moved(project, project.db, url);
		expect((await project.run(['worker', '--drain'])).code).toBe(74);
		await until(200, ['worker', '--drain', '--rate', '200/s'], url);
		expect(sink.received.length).toBeLessThan(300);
		const back = join(project.folder, 'back.db');
		await moved(project, url, back);
		expect((await on(project, back)(['worker', '--drain'])).code).toBe(0);
		expect(sink.received.map(({ to }) => to[0]).sort()).toEqual(people.map((one) => one.trim()).sort());
		const ids = sink.received.map(({ raw }) => /^message-id: (.*)$/im.exec(raw.toString())?.[1]);
		expect(new Set(ids).size).toBe(300);
		const { messages } = JSON.parse(
			(await on(project, back)(['engine', 'queue', 'stats', '-o', 'json'])).stdout,
		);
		expect(messages).toEqual({ sent: 300 });
		expect((await on(project, back)(['engine', 'check'])).code).toBe(0);
	});

	it('lets an interrupted import continue in the copy, from the row where the import stopped', async () => {
		const project = await makeProject();
		await project.json(['lists', 'create', '--name', 'News', '--email-reason', 'x']);
		const rows = Array.from({ length: 20_000 }, (_, n) => `i${n}@example.org\n`);
		const table = await project.file('i.csv', `email\n${rows.join('')}`);
		const stop = new AbortController();
		const importing = ['subscribers', 'import', table, '--list', 'News', '--batch-size', '500'];
		const stopped = project.run(importing, { interrupts: stop.signal });
		const looking = new Database(project.db, { readonly: true });
		const known = () => Number(looking.prepare('SELECT count(*) FROM subscribers').pluck().get());
		while (known() === 0) await new Promise((resolve) => setImmediate(resolve));
		looking.close();
		stop.abort(new Interrupted('SIGINT'));
		await stopped;
		const url = await server.createProject();
		await moved(project, project.db, url);
		const resumed = await on(project, url)([...importing, '--resume', '-o', 'json']);
		expect(JSON.parse(resumed.stdout)).toMatchObject({ read: 20_000, created: 20_000, duplicate: 0 });
	});

	it('rejects an impossible move and changes nothing', async () => {
		const project = await makeProject();
		const url = await server.createProject();
		const refused = async (from: string, to: string, code: number, why: RegExp) => {
			const result = await migrate(project, from, to);
			expect({ code: result.code, message: errorOf(result)['message'] }).toEqual({
				code,
				message: expect.stringMatching(why),
			});
		};
		await refused(project.db, project.db, 74, /is both source and target/);
		await refused(join(project.folder, 'none.db'), url, 2, /there is no database at .*none\.db/);
		await refused(url, join(project.folder, 'x.db'), 2, /there is no database at postgres:/);
		await refused(project.db, ':memory:', 2, /a database is a file/);
		const other = await makeProject();
		await refused(project.db, other.db, 74, /is not empty \(senders\)/);
		const foreign = new Database(join(project.folder, 'foreign.db'));
		foreign.exec('CREATE TABLE a (b)');
		foreign.close();
		await refused(project.db, join(project.folder, 'foreign.db'), 74, /not a mailctl database/);
		await refused(join(project.folder, 'foreign.db'), url, 74, /not a mailctl database/);
		await ask(url, 'CREATE ROLE weak LOGIN').catch(() => undefined);
		const weak = new URL(url);
		weak.username = 'weak';
		weak.searchParams.set('schema', 'theirs');
		await refused(project.db, weak.href, 4, /this user may not do it; grant it the schema/);
		weak.searchParams.set('password', 'geheim');
		weak.pathname = '/none';
		await refused(project.db, weak.href, 74, /this database does not exist/);
		expect((await migrate(project, project.db, weak.href)).stderr).not.toContain('geheim');
		await refused(project.db, 'postgres://user:geheim@127.0.0.1:1/x', 6, /cannot be reached/);
		expect(existsSync(join(project.folder, 'x.db'))).toBe(false);
		expect((await project.run(['lists', 'list'])).code).toBe(0);
		const dry = await migrate(project, project.db, url, '--dry-run');
		expect(JSON.parse(dry.stdout)).toMatchObject({ dry_run: true, migrate: project.db });
		expect((await on(project, url)(['lists', 'list'])).code).toBe(2);
		const asked = await cli(['engine', 'migrate', '--from', project.db, '--to', url], {
			env: { HOME: project.folder },
		});
		expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining('add --yes to agree') });
	});

	it('does not move a database that is in use or has a newer schema', async () => {
		const project = await makeProject();
		const url = await server.createProject();
		const held = new Database(project.db);
		held.prepare('SELECT count(*) FROM lists').get();
		const busy = await migrate(project, project.db, url);
		expect(errorOf(busy)).toMatchObject({ code: 'busy_elsewhere', exit_code: 74 });
		held.prepare('INSERT INTO processes VALUES (?, ?, ?, ?, ?, ?)').run('w', 'worker', 'far', 7, 0, 9e15);
		held.close();
		expect(errorOf(await migrate(project, project.db, url))).toMatchObject({
			message: expect.stringContaining('is in use, and nothing was changed: worker (pid 7 on far)'),
		});
		const change = (text: string) => {
			const db = new Database(project.db);
			db.exec(text);
			db.close();
		};
		change('DELETE FROM processes; PRAGMA user_version = 99');
		expect(errorOf(await migrate(project, project.db, url))).toMatchObject({ code: 'newer_schema' });
		change(`PRAGMA user_version = ${schemaVersion}`);
		await moved(project, project.db, url);
		const back = join(project.folder, 'back.db');
		const schema = new URL(url).searchParams.get('schema');
		const there = (...texts: string[]) => ask(url, `SET search_path = ${schema}`, ...texts);
		await there("INSERT INTO processes VALUES ('s', 'serve', 'far', 8, 0, 9e15)");
		expect(errorOf(await migrate(project, url, back))).toMatchObject({
			code: 'busy_elsewhere',
			message: expect.stringContaining('serve (pid 8 on far)'),
		});
		await there('DELETE FROM processes');
		await on(project, url)(sending);
		const soon = '(extract(epoch FROM now()) * 1000000)::bigint + 60000000';
		const leased = performance.now();
		await there(`UPDATE messages SET state = 'leased', lease_owner = 'far:1:x', wake_at = ${soon}`);
		const busyNow = errorOf(await migrate(project, url, back));
		expect(busyNow).toMatchObject({
			code: 'busy_elsewhere',
			message: expect.stringMatching(/it is sending, or was killed at it; the last lease ends in \d+ s/),
		});
		const left = Number(/ends in (\d+) s/.exec(String(busyNow['message']))?.[1]);
		expect(left).toBeLessThanOrEqual(60);
		expect(left).toBeGreaterThanOrEqual(59 - Math.ceil((performance.now() - leased) / 1_000));
		expect(existsSync(back)).toBe(false);
		expect((await on(project, url)(['lists', 'list'])).code).toBe(0);
		await there('UPDATE messages SET wake_at = 1');
		await moved(project, url, back);
	});

	/** Interrupts a move when its target file appears; both databases are then closed to other commands. */
	async function stopped(
		project: Project,
		words: readonly string[],
		{ to, ...options }: { to: string; columns?: number },
	): Promise<CliResult> {
		const stop = new AbortController();
		const running = cli(words, {
			...options,
			env: { HOME: project.folder, NO_COLOR: '1' },
			interrupts: stop.signal,
		});
		while (!existsSync(to)) await new Promise((resolve) => setImmediate(resolve));
		stop.abort(new Interrupted('SIGINT'));
		const result = await running;
		expect(result.code).toBe(130);
		return result;
	}

	async function interrupted(project: Project, from: string, to: string): Promise<CliResult> {
		const words = ['engine', 'migrate', '--from', from, '--to', to, '--yes', '-o', 'json'];
		const result = await stopped(project, words, { to });
		const hint = String(errorOf(result)['hint']);
		expect(hint).toContain('neither database works now; to continue: mailctl engine migrate --from');
		expect(hint).toContain('--undo');
		expect((await on(project, from)(['lists', 'list'])).stderr).toMatch(
			/is being moved to .*add --undo to stop it/,
		);
		expect((await on(project, to)(['worker', '--drain'])).stderr).toMatch(
			/is an unfinished copy of postgres:/,
		);
		return result;
	}

	it('blocks both databases until an unfinished move is continued or undone', async () => {
		const project = await makeProject();
		await project.json(['lists', 'create', '--name', 'News', '--email-reason', 'x']);
		const url = await server.createProject();
		expect(errorOf(await migrate(project, project.db, url, '--undo'))).toMatchObject({
			message: expect.stringContaining('is not being moved'),
		});
		await moved(project, project.db, url);
		const file = (name: string) => join(project.folder, name);
		await interrupted(project, url, file('a.db'));
		const schema = new URL(url).searchParams.get('schema');
		await expect(ask(url, `SET search_path = ${schema}`, 'UPDATE lists SET name = name')).rejects.toThrow(
			/this database is being moved to .*a\.db since/,
		);
		const dry = await migrate(project, url, file('a.db'), '--undo', '--dry-run');
		expect(JSON.parse(dry.stdout)).toMatchObject({ migrate: expect.any(String), with: { undo: true } });
		const undone = await migrate(project, url, file('a.db'), '--undo');
		expect(JSON.parse(undone.stdout)).toMatchObject({ undone: true });
		expect(existsSync(file('a.db'))).toBe(false);
		expect((await on(project, url)(['lists', 'update', '1', '--name', 'Changed'])).code).toBe(0);
		await interrupted(project, url, file('b.db'));
		// A move to another target starts from the beginning, and commands still refuse the first target.
		expect(await moved(project, url, file('c.db'))).toMatchObject({ kept: 0 });
		expect((await on(project, file('c.db'))(['lists', 'list'])).stdout).toContain('Changed');
		expect(errorOf(await migrate(project, url, file('b.db')))).toMatchObject({ code: 'moved' });
		expect((await on(project, file('b.db'))(['lists', 'list'])).code).toBe(74);
		expect(errorOf(await migrate(project, url, file('c.db'), '--undo'))).toMatchObject({ code: 'moved' });
	});

	it('starts from the beginning if it was killed before it blocked the source database', async () => {
		const project = await makeProject();
		const url = await server.createProject();
		const back = join(project.folder, 'back.db');
		const mark: Mark = { id: 'killed', role: 'copy', isOver: false, other: 'x', at: 1 };
		for (const copy of [new MovablePostgres(url), new MovableSqlite(back)]) {
			await copy.begin(mark);
			await copy.close();
		}
		expect((await on(project, url)(['lists', 'list'])).stderr).toContain('is an unfinished copy of x');
		await moved(project, project.db, url);
		await moved(project, url, back);
		expect((await on(project, back)(['lists', 'list'])).code).toBe(0);
	});

	it('can undo a move even if the copy is unreachable', async () => {
		const project = await makeProject();
		await project.json(['lists', 'create', '--name', 'News', '--email-reason', 'x']);
		const url = await server.createProject();
		await moved(project, project.db, url);
		const back = join(project.folder, 'back.db');
		await interrupted(project, url, back);
		const undone = await migrate(project, url, 'postgres://u:geheim@127.0.0.1:1/x', '--undo');
		expect(undone.code).toBe(0);
		expect(undone.stderr).toMatch(/the copy could not be deleted, so delete postgres:.*cannot be reached/);
		expect(undone.stderr).not.toContain('geheim');
		expect((await on(project, url)(['lists', 'list'])).stdout).toContain('News');
		expect((await on(project, back)(['lists', 'list'])).code).toBe(74);
		// The copy has no rows yet.
		expect(await moved(project, url, back)).toMatchObject({ kept: 0 });
	});

	it('rejects a copy whose content differs from the source', async () => {
		const project = await makeProject();
		await project.json(['lists', 'create', '--name', 'News', '--email-reason', 'x']);
		const url = await server.createProject();
		await moved(project, project.db, url);
		const back = join(project.folder, 'back.db');
		await interrupted(project, url, back);
		const db = new Database(back);
		db.exec("INSERT OR REPLACE INTO lists (id, name, email_reason, created_at) VALUES (1, 'Other', 'x', 1)");
		db.close();
		const result = await migrate(project, url, back);
		expect(result.code).toBe(11);
		expect(errorOf(result)).toMatchObject({
			code: 'copy_differs',
			details: ['lists: 1 rows there and 1 here, with other contents'],
		});
		expect((await on(project, back)(['lists', 'list'])).stderr).toContain('unfinished copy');
		expect((await migrate(project, url, back, '--undo')).code).toBe(0);
		expect(await moved(project, url, back)).toMatchObject({ kept: 0 });
	});

	it('writes U+FFFD in place of characters that PostgreSQL cannot store', async () => {
		const project = await makeProject();
		const db = new Database(project.db);
		db.prepare('INSERT INTO settings VALUES (?, ?, ?)').run('page_sender_name', 'a\0b\0', 1);
		db.close();
		const url = await server.createProject();
		expect(await moved(project, project.db, url)).toMatchObject({ replaced: 1 });
		const { stdout } = await on(
			project,
			url,
		)(['engine', 'settings', 'get', 'page_sender_name', '-o', 'json']);
		expect(stdout).toContain('a\ufffdb\ufffd');
	});

	it('requires the key that encrypts the secrets of the database', async () => {
		const project = await makeProject();
		const key = await project.file('key', createHash('sha256').update('k').digest('hex'));
		await project.json(['engine', 'dkim', 'add', '--domain', 'example.com', '--selector', 's1']);
		await project.json(['engine', 'secrets', 'wrap', '--yes'], { env: { MAILCTL_KEY_FILE: key } });
		const url = await server.createProject();
		const words = ['engine', 'migrate', '--from', project.db, '--to', url, '--yes', '-o', 'json'];
		const without = await cli(words, { env: { HOME: project.folder } });
		expect(errorOf(without)).toMatchObject({ code: 'key', exit_code: 78 });
		const env = { HOME: project.folder, MAILCTL_KEY_FILE: key };
		expect((await cli(words, { env })).code).toBe(0);
		expect((await cli(['--db', url, 'engine', 'dkim', 'list'], { env })).code).toBe(0);
		expect((await cli(['--db', url, 'lists', 'list'], { env: { HOME: project.folder } })).code).toBe(78);
	});
});
