import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { openConnection } from '../../../src/store/sqlite/connection.js';
import { beat } from '../../../src/store/sqlite/core.js';
import { migrate } from '../../../src/store/sqlite/migrations.js';
import { createSql } from '../../../src/store/sqlite/sql.js';
import { dropExpired, tendLog } from '../../../src/store/sqlite/upkeep.js';
import { Writer } from '../../../src/store/sqlite/writer.js';
import { day, hour, noon } from '../../contract/store/fixture.js';

describe('upkeep', () => {
	let path: string;
	let db: Database.Database;
	beforeEach(() => {
		const folder = mkdtempSync(join(tmpdir(), 'mailctl-upkeep-'));
		path = join(folder, 'mailctl.db');
		db = openConnection({ path, mode: 'create', role: 'writer', busyTimeoutMs: 50 });
		db.pragma('wal_autocheckpoint = 0');
		migrate(db, { path, me: { id: 'me', role: 'serve', host: hostname(), pid: process.pid }, now: noon });
		return () => {
			db.close();
			rmSync(folder, { recursive: true, force: true });
		};
	});
	const logBytes = () => statSync(`${path}-wal`).size;
	const writePages = (count: number) => {
		db.exec('CREATE TABLE IF NOT EXISTS filler (x)');
		db.prepare('INSERT INTO filler VALUES (zeroblob(?))').run(count * 8192);
	};
	const copied = () => (db.pragma('wal_checkpoint(NOOP)') as { checkpointed: number }[])[0]?.checkpointed;

	it('checkpoints a long log, but does not shrink its file', () => {
		writePages(1_500);
		const before = logBytes();
		const length = tendLog(db, 0);
		expect(copied()).toBe(length);
		expect(logBytes()).toBe(before);
	});

	it('truncates the log if nothing was written since the last checkpoint', () => {
		writePages(500);
		tendLog(db, tendLog(db, 0));
		expect(logBytes()).toBe(0);
	});

	it('does not wait for a reader, and truncates the log later', () => {
		writePages(500);
		const reader = new Database(path);
		reader.exec('BEGIN');
		reader.prepare('SELECT count(*) FROM lists').get();
		writePages(500);
		const length = tendLog(db, tendLog(db, 0));
		expect(logBytes()).toBeGreaterThan(0);
		reader.close();
		tendLog(db, length);
		expect(logBytes()).toBe(0);
	});

	it('deletes idempotency keys, unused uploads and rows of dead processes after 24 hours', async () => {
		const sql = createSql(db);
		const remember = (key: string, created_at: number) =>
			sql.run(
				`INSERT INTO idempotency_keys (scope, key, fingerprint, submission_id, answer, created_at)
				VALUES ('t', ?, 'f', 's', '{}', ?)`,
				[key, created_at],
			);
		db.transaction(() => {
			for (let i = 0; i < 2_500; i++) remember(`old${i}`, noon - day);
		})();
		remember('young', noon - day + 1);
		const me = { role: 'cli', host: hostname(), pid: 1 };
		beat(sql, { ...me, id: 'gone' }, noon - day);
		beat(sql, { ...me, id: 'silent' }, noon - hour);
		const upload = (sha256: string, expires_at: number | null) =>
			sql.run(
				"INSERT INTO attachments (sha256, size, created_at, expires_at, bytes) VALUES (?, 1, 0, ?, x'00')",
				[sha256, expires_at],
			);
		upload('late', noon);
		upload('early', noon + 1);
		upload('named', null);
		let groups = 0;
		const writer = new Writer({
			db,
			path,
			lockTimeoutMs: 100,
			pace: () => ({ maxGroupMs: 1_000, pauseMs: 0 }),
			beforeGroup: () => {
				groups += 1;
			},
		});
		await dropExpired(sql, writer, noon);
		expect(sql.all('SELECT key FROM idempotency_keys')).toEqual([{ key: 'young' }]);
		expect(sql.all('SELECT id FROM processes')).toEqual([{ id: 'silent' }]);
		expect(sql.all('SELECT sha256 FROM attachments ORDER BY sha256')).toEqual([
			{ sha256: 'early' },
			{ sha256: 'named' },
		]);
		// Keys need three groups, and each other kind of expired row needs one.
		expect(groups).toBe(11);
	});
});
