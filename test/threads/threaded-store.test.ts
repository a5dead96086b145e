// The store in threads: the same suite, the same errors, and what happens when a thread ends.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openThreadedStore } from '../../src/threads/threaded-store.js';
import { storeSuite } from '../contract/store.suite.js';

function newFolder(): string {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-threads-'));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	return folder;
}

storeSuite('a SQLite file, in threads', (clock) =>
	openThreadedStore(join(newFolder(), 'mailctl.db'), { clock, mode: 'create', eventDelayMs: 0 }),
);
