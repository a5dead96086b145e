/** The store's suite on SQLite: on a file as it is used, and in memory. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openStore } from '../../src/store/open.js';
import { storeSuite } from '../contract/store.suite.js';
import { emptyDatabase } from '../support/model.js';

storeSuite('a SQLite file', async (clock) => {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-store-'));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	const path = await emptyDatabase(join(folder, 'mailctl.db'));
	return openStore(path, { clock, mode: 'existing', eventDelayMs: 0 });
});

storeSuite('SQLite in memory', (clock) => openStore(':memory:', { clock, mode: 'create', eventDelayMs: 0 }));
