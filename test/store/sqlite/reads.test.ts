/** Snapshots of a connection that only reads, beside one that writes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { openReader, openStore } from '../../../src/store/open.js';
import { fixedClock, newList } from '../../contract/store/fixture.js';

it('a reader sees what another connection commits between two turns, and keeps no log from being emptied', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-reads-'));
	const path = join(folder, 'mailctl.db');
	const store = await openStore(path, { clock: fixedClock, mode: 'create' });
	const reader = await openReader(path);
	const other = new Database(path);
	onTestFinished(async () => {
		other.close();
		await reader.close();
		await store.close();
		rmSync(folder, { recursive: true });
	});
	await newList(store, 'News');
	const name = async () => (await reader.reads.pageLists({ page: 1, page_size: 100 })).results[0]?.name;
	for (const expected of ['News', 'News+', 'News++']) {
		expect(await Promise.all([name(), name()])).toEqual([expected, expected]);
		await setImmediate();
		other.exec("UPDATE lists SET name = name || '+'");
		// 0: no reader was in its way.
		expect(other.pragma('wal_checkpoint(TRUNCATE)')).toMatchObject([{ busy: 0 }]);
	}
});
