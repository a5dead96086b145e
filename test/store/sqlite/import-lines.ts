import { hostname } from 'node:os';
import Database from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import type { ImportBatch } from '../../../src/api/capabilities.js';
import type { CheckedBatch } from '../../../src/api/row-texts.js';
import type { SliceSize } from '../../../src/store/slices.js';
import { createCore } from '../../../src/store/sqlite/core.js';
import { createImportLine } from '../../../src/store/sqlite/import-line.js';
import { migrate } from '../../../src/store/sqlite/migrations.js';
import { createSql } from '../../../src/store/sqlite/sql.js';
import { createWriter } from '../../../src/store/sqlite/writer.js';
import { newUuid, noon } from '../../contract/store/fixture.js';

/** An import session on a database of its own, and the line its batches wait in. */
export function startLine(size: SliceSize) {
	const db = new Database(':memory:');
	onTestFinished(() => void db.close());
	const me = { id: 'me', role: 'cli', host: hostname(), pid: process.pid };
	migrate(db, { path: ':memory:', me, now: noon });
	const core = createCore(createSql(db));
	const id = newUuid();
	let groups = 0;
	let failIn = Number.NaN;
	const writer = createWriter({
		db,
		path: ':memory:',
		lockTimeoutMs: 100,
		pace: () => ({ maxGroupMs: 1_000, pauseMs: 0 }),
		beforeGroup: () => {
			groups += 1;
			if (groups === failIn) throw new Error('the disk is full');
		},
		afterLongGroup: () => undefined,
		random: () => 0.5,
	});
	core.createList({ input: { name: 'News', email_reason: 'r' }, now: noon });
	core.openImport({
		id,
		key: 'k',
		spec: { list_id: 1, on_conflict: 'update', reactivate: false },
		now: noon,
	});
	return {
		core,
		db,
		line: createImportLine(core, writer, size),
		/** A batch of the session as it is put. */
		put: (batch: ImportBatch | CheckedBatch) => ({ session: id, batch, now: noon }),
		command: (first: number, ...cells: string[]) => ({
			session: id,
			batch: { first, columns: ['email'], cells },
			now: noon,
		}),
		groups: () => groups,
		failNext: (after = 0) => {
			failIn = groups + 1 + after;
		},
	};
}
