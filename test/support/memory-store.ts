/** The synchronous core on an in-memory database. Tests can count the writer's groups and make them fail. */
import { hostname } from 'node:os';
import Database from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import { createCore } from '../../src/store/sqlite/core.js';
import { migrate } from '../../src/store/sqlite/migrations.js';
import { createSql } from '../../src/store/sqlite/sql.js';
import { stepsOf } from '../../src/store/sqlite/store.js';
import { Writer } from '../../src/store/sqlite/writer.js';

export function migrated(db: Database.Database, now = 0): Database.Database {
	migrate(db, { path: ':memory:', me: { id: 'me', role: 'cli', host: hostname(), pid: process.pid }, now });
	return db;
}

export function memoryStore({ isTrial = false } = {}) {
	const db = migrated(new Database(':memory:'));
	onTestFinished(() => void db.close());
	const sql = createSql(db);
	const core = createCore(sql);
	let groups = 0;
	let failAt = Number.NaN;
	const writer = new Writer({
		...{ db, path: ':memory:', lockTimeoutMs: 100, isTrial },
		pace: () => ({ maxGroupMs: 1_000, pauseMs: 0 }),
		beforeGroup: () => {
			groups += 1;
			if (groups === failAt) throw new Error('the process was killed');
		},
	});
	return {
		...{ db, sql, core, writer, steps: stepsOf(core, writer), groups: () => groups },
		failAfter: (more: number) => {
			failAt = groups + more + 1;
		},
	};
}
