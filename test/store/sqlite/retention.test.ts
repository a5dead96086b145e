import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, onTestFinished } from 'vitest';
import { openStore } from '../../../src/store/open.js';
import { fixedClock } from '../../contract/store/fixture.js';
import { type Kept, retentionSuite } from '../../contract/store/retention.js';
import { expiring } from '../../support/expire.js';

async function open(): Promise<Kept> {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-retention-'));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	const path = join(folder, 'mailctl.db');
	const store = await openStore(path, { clock: fixedClock, mode: 'create', eventDelayMs: 0 });
	onTestFinished(() => store.close());
	const { db, expire } = expiring(path);
	return {
		store,
		expire,
		run: async (sql) => void db.exec(sql),
		count: async (sql) => Number(db.prepare(sql).pluck().get()),
	};
}

describe('retention', () => retentionSuite(open));
