import { once } from 'node:events';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openStore } from '../../src/store/open.js';
import { look, modeOf, partsIn, placeIn, workplace } from '../support/backup-place.js';
import { cli, programPath } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import {
	asked,
	databaseCalls,
	expectHappened,
	faultsOver,
	hasStrace,
	measurePoints,
	runNode,
	timeLimit,
} from '../support/fault-points.js';
import { copyOf, onceFor } from '../support/model.js';
import { makeProject } from '../support/project.js';
import { runProgram } from '../support/run-program.js';
import { startSmtpSink } from '../support/smtp-sink.js';
import { typing } from '../support/typing.js';

const kills = asked('MAILCTL_KILLS', 10);
const faults = asked('MAILCTL_FAULTS', 8);
const isRoot = process.getuid?.() === 0;

function backedUp(people = 10) {
	return placeIn(copyOf(backedUpOf(people)));
}

const backedUpOf = onceFor((people: number) => {
	const { folder, json } = workplace(people);
	json('engine', 'backup', 'copy.db');
	json('subscribers', 'create', '--list', 'Readers', '--email', 'last@example.com');
	return folder;
});

const agreed = ['--confirm', 'restore'];
const keptIn = (folder: string) => readdirSync(folder).filter((name) => name.includes('.before-restore-'));

describe('engine restore', () => {
	it('replaces the database, and keeps the old one beside it', () => {
		const { folder, db, json } = backedUp();
		const said = json('engine', 'restore', 'copy.db', ...agreed);
		const [kept = ''] = keptIn(folder);
		expect(readdirSync(folder).filter((name) => /-(wal|shm|journal)$|\.part/.test(name))).toEqual([]);
		expect(said).toEqual({
			database: db,
			file: 'copy.db',
			kept: join(folder, kept),
			newest: expect.any(String),
			size_bytes: expect.any(Number),
			schema_version: expect.any(Number),
			lists: 1,
			subscribers: 10,
			messages: 0,
			uncertain: 0,
			waiting: 0,
			erased: 0,
			queue: 'paused',
			duration_ms: expect.any(Number),
		});
		expect(look(db)).toMatchObject({ sound: 'ok', subscribers: 10 });
		expect(look(join(folder, kept))).toMatchObject({ sound: 'ok', subscribers: 11 });
		expect([modeOf(db), modeOf(join(folder, kept))]).toEqual(['600', '600']);
		expect(json('doctor', '--only', 'database').ok ?? true).toBe(true);
		const why = json('engine', 'status').paused.reason;
		expect(why, 'nothing waits').toMatch(/^restored from copy\.db of [\d: -]+ UTC$/);
	});

	it.each([
		['without earlier erasures', []],
		['with an earlier erasure', ['cid@example.com']],
	])('repeats each erasure that is newer than the backup: database %s', async (_, before) => {
		const project = await makeProject();
		const { folder, db, json, run } = project;
		const erase = (email: string) => json(['subscribers', 'erase', email, '--confirm', email]);
		const create = (email: string) => ['subscribers', 'create', '--list', 'News', '--email', email];
		await json(['lists', 'create', '--name', 'News', '--email-reason', 'x']);
		for (const name of ['ann', 'bob', 'cid']) await json(create(`${name}@example.com`));
		await json(['suppressions', 'add', 'ann@example.com']);
		for (const email of before) await erase(email);
		const copy = join(folder, 'copy.db');
		await json(['engine', 'backup', copy]);
		await erase('ann@example.com');
		await json(create('later@example.com'));
		await erase('later@example.com');
		const subscribers = 2 - before.length;
		expect(await json(['engine', 'restore', copy, ...agreed])).toMatchObject({ erased: 1, subscribers });
		expect(readFileSync(db).includes('ann@example.com')).toBe(false);
		expect(readFileSync(db).includes('bob@example.com')).toBe(true);
		for (const email of ['ann@example.com', 'later@example.com', ...before])
			expect(await run(create(email))).toMatchObject({ code: 5, stderr: expect.stringContaining('erased') });
		expect(await run(['engine', 'check'])).toMatchObject({ code: 0 });
	});

	it('creates a missing database and its folder', () => {
		const { folder, json } = backedUp();
		const db = join(folder, 'far', 'away', 'news.db');
		expect(json('--db', db, 'engine', 'restore', 'copy.db')).toMatchObject({
			...{ database: db, kept: null },
			// Without the old database, `restore` cannot know the erasures since the backup.
			erased: null,
		});
		expect(look(db)).toMatchObject({ sound: 'ok', subscribers: 10 });
		expect([modeOf(db), modeOf(join(folder, 'far', 'away'))]).toEqual(['600', '700']);
		const { status, stdout } = runProgram(
			process.execPath,
			[programPath, '--db', db, 'doctor', '--only', 'database', '-o', 'json'],
			{ env: { PATH: process.env['PATH'] ?? '', HOME: folder }, cwd: folder },
		);
		expect({ status, stdout: stdout.includes('"problem"') }).toEqual({ status: 0, stdout: false });
	});

	it('pauses the queue without losing its messages, and marks leased messages as uncertain', async () => {
		const sink = await startSmtpSink();
		onTestFinished(() => sink.close());
		const { db, folder, run, json } = await makeProject({ smtp: sink.port });
		const mail = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--no-wait'];
		await json([...mail, '--to', 'first@example.com']);
		const store = await openStore(db, { clock: { now: () => Date.now() * 1000 }, mode: 'existing' });
		const now = Date.now() * 1000;
		const lease = { owner: 'far:1:x', now, until: now + 60_000_000, max: 1, scope: null };
		expect(await store.queue.lease(lease)).toHaveLength(1);
		await store.close();
		await json([...mail, '--to', 'second@example.com']);
		const copy = join(folder, 'copy.db');
		await json(['engine', 'backup', copy]);
		const restored = await run(['engine', 'restore', copy, ...agreed]);
		expect(restored).toMatchObject({ code: 0, stderr: expect.stringContaining('engine queue resume') });
		expect(restored.stderr.replace(/\s+/g, ' ')).toContain(
			'1 message that mailctl was sending during the backup may have arrived',
		);
		expect(restored.stderr.replace(/\s+/g, ' ')).toContain('the queue is paused, and 1 waiting message may');
		expect(restored.stderr.replace(/\s+/g, ' ')).toContain(
			'cancel waiting messages that were already sent (messages list, messages cancel)',
		);
		expect((await run(['engine', 'status', '-o', 'json'])).stdout).toMatch(
			/"restored from .* UTC: 1 waiting message may have been sent since the backup"/,
		);
		await run(['worker', '--drain']);
		expect(sink.received).toHaveLength(0);
		await json(['engine', 'queue', 'resume']);
		expect(await run(['worker', '--drain'])).toMatchObject({ code: 0 });
		expect(sink.received.map(({ to }) => to)).toEqual([['second@example.com']]);
		const states = (await json(['messages', 'list'])) as { to: string; state: string }[];
		expect(Object.fromEntries(states.map(({ to, state }) => [to, state]))).toEqual({
			'first@example.com': 'uncertain',
			'second@example.com': 'sent',
		});
	});

	it('requires the typed word "restore", even with -y', async () => {
		const { folder, db, run } = backedUp();
		for (const words of [[], ['-y'], ['--confirm', 'yes']])
			expect(run('engine', 'restore', 'copy.db', ...words)).toMatchObject({
				status: 2,
				stderr: expect.stringContaining('--confirm restore'),
			});
		expect(look(db).subscribers).toBe(11);
		const words = ['--db', db, 'engine', 'restore', join(folder, 'copy.db')];
		const asked = (answer: string, again = '') => {
			const answers = [['Type restore', answer] as const, ['is not "restore"', again] as const];
			return typing(answers, (options) => cli(words, options));
		};
		expect(await asked('no')).toMatchObject({ code: 130 });
		expect(look(db).subscribers).toBe(11);
		expect(await asked('restore')).toMatchObject({ code: 0 });
		expect(look(db).subscribers).toBe(10);
	});

	it('is rejected while another process uses the database', async () => {
		const { folder, db, run, start } = backedUp();
		const serve = start('serve', '--port', '0', '--no-worker');
		await eventually(() => {
			const { status, stderr } = run('engine', 'restore', 'copy.db', '-n');
			expect({ status, stderr }).toMatchObject({
				status: 2,
				stderr: expect.stringMatching(/serve --no-worker \(pid \d+/),
			});
		});
		expect(run('engine', 'restore', 'copy.db', ...agreed)).toMatchObject({ status: 2 });
		serve.kill('SIGTERM');
		if (serve.exitCode === null) await once(serve, 'exit');
		// This process has the database open and has never written.
		const words = ['--db', db, 'engine', 'restore', join(folder, 'copy.db')];
		const idle = new Database(db);
		idle.prepare('SELECT count(*) FROM lists').get();
		const { status, stderr } = run('engine', 'restore', 'copy.db', ...agreed);
		expect({ status, stderr }).toMatchObject({
			status: 74,
			stderr: expect.stringContaining('another process has'),
		});
		const atTerminal = await typing([], (options) => cli(words, options));
		expect(atTerminal).toMatchObject({ code: 74, stderr: expect.not.stringContaining('Type restore') });
		expect(idle.prepare('SELECT count(*) FROM subscribers').pluck().get()).toBe(11);
		idle.close();
		expect(run('engine', 'restore', 'copy.db', ...agreed).status).toBe(0);
	});

	it.each([
		['no file', 'none.db', 2, 'no such file'],
		['the database itself', 'news.db', 2, 'is the database itself'],
		['another file', 'letter.txt', 74, 'is not a mailctl database'],
		['another program’s database', 'other.db', 74, 'not a mailctl database'],
		['a newer database', 'newer.db', 74, 'but this mailctl knows only'],
		['a damaged backup', 'damaged.db', 74, 'damaged'],
		['a backup with a trigger', 'trigger.db', 74, 'is not a backup of mailctl: it has a trigger evil'],
	])('rejects %s, and changes nothing', (_, file, code, words) => {
		const { folder, db, run } = backedUp(2_000);
		const at = (name: string) => join(folder, name);
		writeFileSync(at('letter.txt'), 'Dear Ann,\n'.repeat(100));
		const other = new Database(at('other.db'));
		other.exec('CREATE TABLE cookies (name TEXT)');
		other.close();
		copyFileSync(at('copy.db'), at('newer.db'));
		const newer = new Database(at('newer.db'));
		newer.pragma('user_version = 999');
		newer.close();
		copyFileSync(at('copy.db'), at('trigger.db'));
		const changed = new Database(at('trigger.db'));
		changed.exec('CREATE TRIGGER evil AFTER DELETE ON processes BEGIN DELETE FROM suppressions; END');
		changed.close();
		const bytes = readFileSync(at('copy.db'));
		bytes.fill(0x5a, bytes.length - 3 * 8_192, bytes.length - 8_192);
		writeFileSync(at('damaged.db'), bytes);
		for (const more of [['-n'], agreed]) {
			const { status, stderr } = run('engine', 'restore', file, ...more);
			expect({ status, stderr }).toMatchObject({ status: code, stderr: expect.stringContaining(words) });
			if (file === 'damaged.db')
				expect(stderr).toMatch(
					/^error: damaged\.db: this backup is damaged, and nothing was changed \([^\\]*\)\nhint: use another backup\n$/m,
				);
		}
		expect(look(db)).toMatchObject({ sound: 'ok', subscribers: 2_001 });
		expect([...keptIn(folder), ...partsIn(folder)]).toEqual([]);
	});

	it('replaces a damaged database, but keeps its file and its WAL file', () => {
		const { folder, db, json } = backedUp();
		writeFileSync(db, 'nothing that SQLite could read');
		writeFileSync(`${db}-wal`, 'a log');
		json('engine', 'restore', 'copy.db', ...agreed);
		expect(look(db)).toMatchObject({ sound: 'ok', subscribers: 10 });
		const kept = keptIn(folder)
			.filter((name) => !name.endsWith('-shm'))
			.sort();
		expect(kept.map((name) => readFileSync(join(folder, name), 'utf8'))).toEqual([
			'nothing that SQLite could read',
			'a log',
		]);
	});

	it('renames a WAL file whose database does not exist', () => {
		const { folder, json } = backedUp();
		const far = join(folder, 'far.db');
		const one = new Database(far);
		one.pragma('journal_mode = WAL');
		one.exec('CREATE TABLE strange (x)');
		copyFileSync(`${far}-wal`, join(folder, 'lost.db-wal'));
		one.close();
		const db = join(folder, 'lost.db');
		json('--db', db, 'engine', 'restore', 'copy.db');
		expect(look(db)).toMatchObject({ sound: 'ok', subscribers: 10 });
		expect(keptIn(folder)).toEqual([expect.stringMatching(/^lost\.db\.before-restore-.*-wal$/)]);
	});

	it('requires the key of the encrypted secrets before it changes anything', () => {
		const { folder, db, env, run } = workplace(10);
		const key = { ...env, MAILCTL_KEY: 'a'.repeat(64) };
		const withKey = (...words: string[]) =>
			runProgram(process.execPath, [programPath, ...words], { env: key, cwd: folder });
		writeFileSync(join(folder, 'pass'), 'secret');
		expect(withKey('engine', 'init', '--smtp-password-file', 'pass').status).toBe(0);
		expect(withKey('engine', 'secrets', 'wrap').status).toBe(0);
		expect(run('engine', 'backup', 'copy.db').status).toBe(0);
		const before = readFileSync(db);
		const { status, stderr } = run('engine', 'restore', 'copy.db', ...agreed);
		expect({ status, stderr }).toMatchObject({
			status: 78,
			stderr: expect.stringContaining('MAILCTL_KEY_FILE'),
		});
		expect(look(db).subscribers).toBe(10);
		expect(before.length).toBe(statSync(db).size);
		expect([...keptIn(folder), ...partsIn(folder)]).toEqual([]);
		expect(withKey('engine', 'restore', 'copy.db', ...agreed).status).toBe(0);
	});

	it.skipIf(!isRoot)('changes nothing on a full disk', (context) => {
		const { folder, run, json } = backedUp(20_000);
		const small = join(folder, 'small');
		mkdirSync(small);
		const mounted = runProgram('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'none', small]);
		if (mounted.status !== 0) return context.skip('no tmpfs can be mounted here');
		onTestFinished(() => void runProgram('umount', [small]));
		const db = join(small, 'news.db');
		json('--db', db, 'engine', 'init', '--sender', 'news@example.com');
		const { status, stderr } = run('--db', db, 'engine', 'restore', 'copy.db', ...agreed);
		expect({ status, stderr }).toMatchObject({
			status: 74,
			stderr: expect.stringContaining('no space left'),
		});
		expect(look(db)).toMatchObject({ sound: 'ok', subscribers: 0 });
		expect(readdirSync(small)).toEqual(['news.db']);
	});

	it.skipIf(!hasStrace)(
		'that is killed or fails at any moment leaves the old or the restored database (needs strace)',
		async () => {
			const { folder, db, env } = backedUp(2_000);
			copyFileSync(db, join(folder, 'master.db'));
			const words = [programPath, 'engine', 'restore', 'copy.db', ...agreed];
			const place = { env, cwd: folder };
			const { points } = await measurePoints({ calls: `${databaseCalls},rename,unlink,link` }, words, place);
			const codes: (number | null)[] = [];
			for (const fault of faultsOver(points, { kills, faults })) {
				for (const suffix of ['-wal', '-shm', '-journal']) rmSync(db + suffix, { force: true });
				copyFileSync(join(folder, 'master.db'), db);
				const { code, stderr } = await runNode(words, fault, place);
				const what = `${JSON.stringify(fault)}: ${code} ${stderr}`;
				codes.push(code);
				expect(fault.does === 'KILL' ? [0, null] : [0, 74], what).toContain(code);
				const next = await cli(['--db', db, 'engine', 'queue', 'stats', '-o', 'json'], { env });
				expect(next, what).toMatchObject({ code: 0 });
				const { sound, subscribers } = look(db);
				expect(sound, what).toBe('ok');
				expect(code === 0 ? [2_000] : [2_000, 2_001], what).toContain(subscribers);
				if (subscribers === 2_000) {
					const kept = keptIn(folder).map((name) => look(join(folder, name)).subscribers);
					expect(kept, what).toContain(2_001);
					expect(JSON.parse(next.stdout).paused, what).toMatchObject({ kind: 'manual' });
				}
			}
			expectHappened(`a restore, ${points.length} calls`, codes, { kills, faults });
		},
		timeLimit,
	);
});
