import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openStore } from '../../src/store/open.js';
import { storeSuite } from '../contract/store.suite.js';
import { emptyDatabase } from '../support/model.js';

storeSuite('SQLite', async (clock) => {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-store-'));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	const path = await emptyDatabase(join(folder, 'mailctl.db'));
	return openStore(path, { clock, mode: 'existing', eventDelayMs: 0 });
});
