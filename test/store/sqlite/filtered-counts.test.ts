import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createFilteredCounts } from '../../../src/store/core/list-counters.js';
import { createSql } from '../../../src/store/sqlite/sql.js';

function scanned() {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-counts-'));
	const path = join(folder, 'x.db');
	const db = new Database(path);
	const other = new Database(path);
	onTestFinished(() => {
		db.close();
		other.close();
		rmSync(folder, { recursive: true, force: true });
	});
	db.pragma('journal_mode = WAL');
	db.exec('CREATE TABLE subscribers (x); INSERT INTO subscribers VALUES (1), (2)');
	let calls = 0;
	db.function('f', (x) => {
		calls += 1;
		return x;
	});
	const count = createFilteredCounts(createSql(db) as never) as unknown as (
		where: string,
		values: number[],
	) => number;
	const read = db.transaction((least: number) => {
		db.prepare('SELECT 1 FROM subscribers').get();
		return count('f(x) >= ?', [least]);
	});
	return { db, other, read: (least: number) => ({ count: read.deferred(least), calls }) };
}

describe('the count of a filter', () => {
	it('is computed once for each filter', () => {
		const { read } = scanned();
		expect([read(1), read(1), read(2), read(1)]).toEqual([
			{ count: 2, calls: 2 },
			{ count: 2, calls: 2 },
			{ count: 1, calls: 4 },
			{ count: 2, calls: 4 },
		]);
	});

	it('is computed again after a change by another connection', () => {
		const { read, other } = scanned();
		read(1);
		other.exec('INSERT INTO subscribers VALUES (3)');
		expect([read(1), read(1)]).toEqual([
			{ count: 3, calls: 5 },
			{ count: 3, calls: 5 },
		]);
	});

	it('does not use uncommitted changes of others', () => {
		const { read, other } = scanned();
		read(1);
		other.exec('BEGIN; INSERT INTO subscribers VALUES (3)');
		expect(read(1)).toEqual({ count: 2, calls: 2 });
		other.exec('COMMIT');
		expect(read(1)).toEqual({ count: 3, calls: 5 });
	});
});
