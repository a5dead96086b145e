/** Retention on SQLite: the suite of both databases, and what only a file has. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, onTestFinished } from 'vitest';
import { openStore } from '../../../src/store/open.js';
import { openConnection } from '../../../src/store/sqlite/connection.js';
import { allMigrations as migrations } from '../../../src/store/sqlite/migrations.js';
import { createSql } from '../../../src/store/sqlite/sql.js';
import { dropExpired } from '../../../src/store/sqlite/upkeep.js';
import { createWriter } from '../../../src/store/sqlite/writer.js';
import { fixedClock } from '../../contract/store/fixture.js';
import { type Kept, retentionSuite } from '../../contract/store/retention.js';

async function open(): Promise<Kept> {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-retention-'));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	const path = join(folder, 'mailctl.db');
	const store = await openStore(path, { clock: fixedClock, mode: 'create', eventDelayMs: 0 });
	onTestFinished(() => store.close());
	const db = openConnection({ path, mode: 'existing', role: 'writer', busyTimeoutMs: 1_000 });
	onTestFinished(() => void db.close());
	const writer = createWriter({
		...{ db, path, lockTimeoutMs: 1_000, random: () => 0.5 },
		pace: () => ({ maxGroupMs: 1_000, pauseMs: 0 }),
		beforeGroup: () => undefined,
		afterLongGroup: () => undefined,
	});
	return {
		store,
		expire: (now) => dropExpired(createSql(db), writer, now),
		run: async (sql) => void db.exec(sql),
		migrate: async (name) => void db.exec(migrations.find((each) => each.name === name)?.sql ?? ''),
		count: async (sql) => Number(db.prepare(sql).pluck().get()),
	};
}

describe('retention', () => retentionSuite(open));
