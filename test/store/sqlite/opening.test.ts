import {
	existsSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	rmSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { StoreError } from '../../../src/api/errors.js';
import { processPlace } from '../../../src/store/core/processes.js';
import { DatabaseMissing } from '../../../src/store/errors.js';
import { openStore } from '../../../src/store/open.js';
import { openConnection } from '../../../src/store/sqlite/connection.js';
import { findOthers } from '../../../src/store/sqlite/core.js';
import { migrate, migrations, schemaVersion } from '../../../src/store/sqlite/migrations.js';
import { createSql } from '../../../src/store/sqlite/sql.js';
import type { Store } from '../../../src/store/store.js';
import { fixedClock, newList, noon } from '../../contract/store/fixture.js';
import { runProgram } from '../../support/run-program.js';

describe('opening a SQLite database', () => {
	let folder: string;
	let path: string;
	beforeEach(() => {
		folder = mkdtempSync(join(tmpdir(), 'mailctl-open-'));
		path = join(folder, 'mailctl.db');
		return () => rmSync(folder, { recursive: true, force: true });
	});
	const open = (mode: 'create' | 'existing' = 'create', where = path): Promise<Store> =>
		openStore(where, { clock: fixedClock, mode, lockTimeoutMs: 100 });
	const failure = (opening: Promise<Store>): Promise<unknown> =>
		opening.then(
			() => null,
			(error: unknown) => error,
		);
	const codeOf = async (opening: Promise<Store>) => {
		const error = await failure(opening);
		return error instanceof StoreError ? error.code : error;
	};

	it('creates the file 0600 and a new folder 0700 with any umask', async () => {
		for (const umask of [0o000, 0o022, 0o777]) {
			const before = process.umask(umask);
			const place = join(folder, `new-${umask}`, 'mailctl.db');
			try {
				const store = await open('create', place);
				await newList(store);
				for (const name of readdirSync(join(place, '..'))) {
					expect([name, statSync(join(place, '..', name)).mode & 0o777]).toEqual([name, 0o600]);
				}
				expect(statSync(join(place, '..')).mode & 0o777).toBe(0o700);
				await store.close();
			} finally {
				process.umask(before);
			}
		}
	});

	it('fails if a required database is missing, and does not create the file', async () => {
		const error = await failure(open('existing'));
		expect(error).toBeInstanceOf(DatabaseMissing);
		expect(String(error)).toBe(`DatabaseMissing: there is no database at ${path}`);
		expect(existsSync(path)).toBe(false);
	});

	it('reports a dangling link, or a file in place of a folder', async () => {
		const dead = join(folder, 'dead.db');
		symlinkSync(join(folder, 'elsewhere.db'), dead);
		const file = join(folder, 'file');
		writeFileSync(file, '');
		for (const mode of ['create', 'existing'] as const)
			for (const [where, reason] of [
				[dead, 'a symbolic link in its path is broken'],
				[join(dead, 'news.db'), 'a symbolic link in its path is broken'],
				[join(file, 'news.db'), 'not a directory'],
			] as const)
				expect(await failure(open(mode, where))).toEqual(
					new StoreError('io', `cannot open ${where}: ${reason}`),
				);
		expect(readdirSync(folder).sort()).toEqual(['dead.db', 'file']);
	});

	it('reports a new file only to the process that created it', async () => {
		const made: number[] = [];
		for (const at of [0, 1])
			await openStore(path, {
				...{ clock: fixedClock, mode: 'create', lockTimeoutMs: 100 },
				onCreated: () => made.push(at),
			}).then((store) => store.close());
		expect(made).toEqual([0]);
	});

	it('rejects a text file, a directory, and a database of another program', async () => {
		writeFileSync(path, 'email,name\nann@example.org,Ann\n'.repeat(100));
		expect(await codeOf(open())).toBe('not_a_database');
		expect(await codeOf(open('create', folder))).toBe('not_a_database');
		const other = join(folder, 'other.db');
		new Database(other).exec('CREATE TABLE t (x)').close();
		const before = readFileSync(other);
		expect(await codeOf(open('create', other))).toBe('not_a_database');
		expect(readFileSync(other).equals(before), 'it is left as it was').toBe(true);
	});

	it('migrates only after live processes with the older schema have ended, and rejects a newer schema', async () => {
		const store = await open();
		await newList(store);
		const db = new Database(path);
		const join = db.prepare('INSERT INTO processes VALUES (?, ?, ?, ?, ?, ?)');
		join.run('other', 'serve', 'elsewhere', 4711, noon, noon);
		const me = { id: 'me', role: 'cli', host: hostname(), pid: process.pid };
		const version = schemaVersion + 1;
		const next = { version, name: 'next', sql: 'CREATE TABLE later (x INTEGER) STRICT' };
		const attempt = (now: number) => () => migrate(db, { path, me, now }, [...migrations, next]);
		expect(attempt(noon)).toThrow(/in use by/);
		await store.close();
		expect(attempt(noon)).toThrow(/in use by serve \(pid 4711 on elsewhere\)/);
		expect(attempt(noon + 16_000_000)).not.toThrow();
		expect(db.prepare('SELECT version, name FROM migrations ORDER BY version').raw().all()).toEqual([
			...migrations.map((done) => [done.version, done.name]),
			[version, 'next'],
		]);
		db.exec('INSERT INTO later VALUES (1)');
		db.close();
		expect(await failure(open())).toEqual(
			new StoreError(
				'newer_schema',
				`${path} has schema ${version}, but this mailctl knows only ${schemaVersion} (databases from before the first release cannot be read)`,
			),
		);
	});

	it('ignores dead processes when it waits for others to end', async () => {
		await (await open()).close();
		const db = new Database(path);
		const dead = runProgram(process.execPath, ['-e', '0']).pid;
		const insert = db.prepare('INSERT INTO processes VALUES (?, ?, ?, ?, ?, ?)');
		insert.run(`${processPlace()}/1/other`, 'serve', hostname(), dead, noon, noon);
		const me = { id: 'me', role: 'cli', host: hostname(), pid: process.pid };
		expect(findOthers(createSql(db), me, noon)).toEqual([]);
		db.close();
	});

	it('reports a database that another process keeps locked', async () => {
		const store = await open();
		const holder = new Database(path);
		holder.exec('BEGIN IMMEDIATE');
		const write = newList(store).catch((error: unknown) => error);
		expect(await write).toMatchObject({ name: 'StoreError', code: 'locked' });
		expect((await store.reads.pageLists({ page: 1, page_size: 1 })).count).toBe(0);
		holder.exec('COMMIT');
		expect(await newList(store)).toBe(1);
		holder.close();
		await store.close();
	});

	it('waits for a lock that is released in time', async () => {
		const store = await openStore(path, { clock: fixedClock, mode: 'create', lockTimeoutMs: 10_000 });
		const holder = new Database(path);
		holder.exec('BEGIN IMMEDIATE');
		setTimeout(() => holder.exec('COMMIT'), 200);
		expect(await newList(store)).toBe(1);
		holder.close();
		await store.close();
	});

	it('sets every pragma on every connection', () => {
		const db = openConnection({ path, role: 'writer', mode: 'create', busyTimeoutMs: 50 });
		const read = (name: string) => db.pragma(name, { simple: true });
		expect([
			read('journal_mode'),
			read('synchronous'),
			read('foreign_keys'),
			read('page_size'),
			read('cache_size'),
			read('mmap_size') ?? 0,
			read('temp_store'),
			read('trusted_schema'),
			read('busy_timeout'),
		]).toEqual(['wal', 2, 1, 8192, -16384, 0, 2, 0, 50]);
		migrate(db, { path, me: { id: 'me', role: 'cli', host: hostname(), pid: process.pid }, now: noon });
		db.close();
		const reader = openConnection({ path, role: 'reader', mode: 'existing', busyTimeoutMs: 50 });
		expect(() => reader.exec('DELETE FROM settings')).toThrow(/readonly/);
		reader.close();
	});
});
