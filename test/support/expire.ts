/** Runs the retention of a database file at once; the leading process does it each hour. */
import type Database from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import type { Micros } from '../../src/api/datetime.js';
import { openConnection } from '../../src/store/sqlite/connection.js';
import { createSql } from '../../src/store/sqlite/sql.js';
import { dropExpired } from '../../src/store/sqlite/upkeep.js';
import { Writer } from '../../src/store/sqlite/writer.js';

export function expiring(path: string): { db: Database.Database; expire(now: Micros): Promise<void> } {
	const db = openConnection({ path, mode: 'existing', role: 'writer', busyTimeoutMs: 1_000 });
	onTestFinished(() => void db.close());
	const writer = new Writer({
		...{ db, path, lockTimeoutMs: 1_000 },
		pace: () => ({ maxGroupMs: 1_000, pauseMs: 0 }),
		beforeGroup: () => undefined,
	});
	return { db, expire: async (now) => await dropExpired(createSql(db), writer, now) };
}
