import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createFilteredCounts } from '../../../src/store/core/subscribers.js';
import { openStore } from '../../../src/store/open.js';
import type { Operations } from '../../../src/store/operations.js';
import { createCore } from '../../../src/store/sqlite/core.js';
import { createSql } from '../../../src/store/sqlite/sql.js';
import { fixedClock, newList, noon } from '../../contract/store/fixture.js';

let folder: string;
let db: Database.Database;
let asked: string[];

beforeEach(async () => {
	folder = mkdtempSync(join(tmpdir(), 'mailctl-counting-'));
	const path = join(folder, 'mail.db');
	const store = await openStore(path, { clock: fixedClock, mode: 'create' });
	await newList(store);
	await store.close();
	asked = [];
	db = new Database(path, { verbose: (text) => void asked.push(String(text)) });
});
afterEach(() => {
	db.close();
	rmSync(folder, { recursive: true, force: true });
});

function planOf(operation: keyof Operations, command: object): string[] {
	const operations = createCore(createSql(db)) as unknown as Record<string, (command: object) => unknown>;
	asked = [];
	operations[operation]?.(command);
	return asked.flatMap((text) =>
		db
			.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
			.all()
			.map(({ detail }) => detail),
	);
}

/** Returns the steps of a query plan that read messages without an index made for counting. */
function walks(plan: readonly string[]): string[] {
	const table = /^(SCAN|SEARCH) (m|messages)\b/;
	const index = /INDEX messages_(over|due|uncertain)\b|INTEGER PRIMARY KEY/;
	return plan.filter((step) => table.test(step) && !index.test(step));
}

it.each([
	['status', {}],
	['countWaiting', {}],
	['countMessages', { scope: null }],
	['queueState', { now: noon }],
] as const)('counting messages by state is fast: %s', (operation, command) => {
	const plan = planOf(operation, command);
	const waiting = plan.filter((step) => step.includes('messages_due'));
	expect(waiting).not.toEqual([]);
	expect(waiting.filter((step) => /^SCAN/.test(step) && !step.includes('COVERING'))).toEqual([]);
	expect(walks(plan)).toEqual([]);
});

it('counting new subscribers of a list is fast', async () => {
	const range = { from: '2026-01-01', to: '2026-12-31', campaign: null, lists: true };
	const plan = planOf('reportDetails', range);
	expect(plan).toContain('SEARCH list_joined USING PRIMARY KEY (list_id=? AND quarter>?)');
	expect(plan.filter((step) => /(SCAN|SEARCH) subscribers\b/.test(step))).toEqual([]);
});

it('in 24 hours, a client can upload at most 5,000 files or 1 GiB that are not yet used in a mail', () => {
	const operations = createCore(createSql(db)) as unknown as Record<string, (command: object) => unknown>;
	const put = (owner?: string, sha256 = 'new') =>
		operations['putAttachment']?.({ sha256, bytes: Buffer.from('x'), owner, now: noon }) !== null;
	const upload = (files: number, { size = 1, created_at = noon } = {}) =>
		db.exec(`DELETE FROM attachments;
			INSERT INTO attachments (sha256, size, created_at, expires_at, bytes)
			WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < ${files})
			SELECT value, ${size}, ${created_at}, ${noon + 1}, X'' FROM n;
			INSERT INTO attachment_owners SELECT sha256, 'ann' FROM attachments`);
	upload(4_999);
	expect([put('ann'), put('ann'), put('ann', 'newer')]).toEqual([true, true, false]);
	expect([put('bob'), put()]).toEqual([true, true]);
	upload(2, { size: 1024 ** 3 / 2 });
	expect([put('ann'), put('ann', '1')]).toEqual([false, true]);
	upload(5_000, { created_at: noon - 2 * 86_400_000_000 });
	expect(put('ann')).toBe(true);
});

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

	it('does not include uncommitted changes of other connections', () => {
		const { read, other } = scanned();
		read(1);
		other.exec('BEGIN; INSERT INTO subscribers VALUES (3)');
		expect(read(1)).toEqual({ count: 2, calls: 2 });
		other.exec('COMMIT');
		expect(read(1)).toEqual({ count: 3, calls: 5 });
	});
});
