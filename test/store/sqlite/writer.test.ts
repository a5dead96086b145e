import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { Writer } from '../../../src/store/sqlite/writer.js';

describe('the writer', () => {
	let db: Database.Database;
	let writer: Writer;
	let groups: number;
	let copies: number;
	let maxGroupMs: number;
	let maxGroupCosts: number;
	let pause: { pauseMs: number; pauseEveryMs?: number };
	let beforeGroup: () => void;
	beforeEach(() => {
		db = new Database(':memory:');
		db.exec('CREATE TABLE t (x UNIQUE)');
		groups = 0;
		copies = 0;
		maxGroupMs = 1_000;
		maxGroupCosts = Number.POSITIVE_INFINITY;
		pause = { pauseMs: 0 };
		beforeGroup = () => {
			groups += 1;
		};
		writer = new Writer({
			db,
			path: 'test.db',
			lockTimeoutMs: 100,
			pace: () => ({ maxGroupMs, maxGroupCosts, ...pause }),
			beforeGroup: () => beforeGroup(),
			afterLongGroup: () => {
				copies += 1;
			},
		});
		return () => db.close();
	});
	const insert = (x: number) => writer.write(() => db.prepare('INSERT INTO t VALUES (?)').run(x).changes);
	const rows = () => db.prepare('SELECT x FROM t ORDER BY x').pluck().all();

	it('commits the operations of one tick together', async () => {
		expect(await Promise.all([insert(1), insert(2), insert(3)])).toEqual([1, 1, 1]);
		expect(groups).toBe(1);
	});

	it('rejects a failing operation alone, and rolls it back', async () => {
		const failing = writer.write(() => {
			db.exec('INSERT INTO t VALUES (9)');
			throw new Error('no');
		});
		const outcomes = await Promise.allSettled([insert(1), failing, insert(2), insert(1)]);
		expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected']);
		expect(rows()).toEqual([1, 2]);
		expect(groups).toBe(1);
	});

	it('rejects a group that cannot start, and starts a new group for later operations', async () => {
		beforeGroup = () => {
			groups += 1;
			if (groups === 1) throw new Error('damaged');
		};
		const outcomes = await Promise.allSettled([insert(1), insert(2)]);
		expect(
			outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.message : 'kept')),
		).toEqual(['damaged', 'damaged']);
		await insert(3);
		expect(rows()).toEqual([3]);
		expect(groups).toBe(2);
	});

	it('rejects an operation that fills the disk and earlier ones in its group, but not later ones', async () => {
		const pages = Number(db.pragma('page_count', { simple: true }));
		db.pragma(`max_page_count = ${pages}`);
		const huge = () => db.prepare('INSERT INTO t VALUES (?)').run('x'.repeat(100_000));
		const outcomes = await Promise.allSettled([insert(1), writer.write(huge), insert(2)]);
		expect(outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.code : 'kept'))).toEqual(
			['disk_full', 'disk_full', 'kept'],
		);
		db.pragma('max_page_count = 100000');
		expect(rows()).toEqual([2]);
	});

	it('gives a bulk operation a separate transaction', async () => {
		const bulk = (x: number, outcome: () => void) =>
			writer.write(
				() => {
					db.prepare('INSERT INTO t VALUES (?)').run(x);
					outcome();
				},
				{ group: 'bulk' },
			);
		const fail = () => {
			throw new Error('no');
		};
		const outcomes = await Promise.allSettled([
			insert(1),
			bulk(2, fail),
			insert(3),
			bulk(4, () => undefined),
		]);
		expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
		expect(rows()).toEqual([1, 3, 4]);
		expect(groups).toBe(4);
	});

	it('turns foreign keys off only during a bulk load', async () => {
		const areChecked = () => db.pragma('foreign_keys', { simple: true }) === 1;
		db.pragma('foreign_keys = ON');
		const load = (operate: () => unknown) => writer.write(operate, { group: 'load' });
		expect(await load(areChecked)).toBe(false);
		expect(await writer.write(areChecked)).toBe(true);
		await expect(load(() => db.exec('INSERT OR ROLLBACK INTO t VALUES (1), (1)'))).rejects.toThrow('UNIQUE');
		expect(areChecked()).toBe(true);
		beforeGroup = () => {
			throw new Error('damaged');
		};
		await expect(load(areChecked)).rejects.toThrow('damaged');
		expect(areChecked()).toBe(true);
		expect(rows()).toEqual([]);
	});

	it('commits a long group early, and answers its operations before the next group', async () => {
		maxGroupCosts = 4;
		await insert(0);
		const order: string[] = [];
		const operation = async (number: number) => {
			await writer.write(() => {
				order.push(`run ${number}`);
				const until = performance.now() + 20;
				while (performance.now() < until);
			});
			order.push(`answered ${number}`);
		};
		await Promise.all(Array.from({ length: 20 }, (_, number) => operation(number)));
		expect(order.indexOf('answered 0')).toBeLessThan(order.indexOf('run 19'));
		expect(groups).toBeGreaterThan(2);
	});

	it('pauses after it has held the lock for a long time', async () => {
		pause = { pauseMs: 15, pauseEveryMs: 100 };
		const gaps: number[] = [];
		let endedAt = Number.NaN;
		const work = () => {
			gaps.push(performance.now() - endedAt);
			const until = performance.now() + 30;
			while (performance.now() < until);
			endedAt = performance.now();
		};
		await Promise.all(Array.from({ length: 20 }, () => writer.write(work, { group: 'bulk' })));
		// A timer may fire a millisecond early.
		expect(gaps.filter((gap) => gap >= 14).length).toBeGreaterThanOrEqual(4);
		expect(copies).toBe(0);
	});

	it('commits an urgent operation and a waiting one in the same group', async () => {
		const patient = writer.write(() => 'patient', { maxDelayMs: 60_000 });
		const hasty = insert(1);
		expect([await patient, await hasty]).toEqual(['patient', 1]);
		expect(groups).toBe(1);
	});

	it('commits waiting operations when it is closed, and rejects later ones', async () => {
		const patient = writer.write(() => 'patient', { maxDelayMs: 60_000 });
		await writer.close();
		expect(await patient).toBe('patient');
		await expect(insert(1)).rejects.toThrow('test.db is closed');
	});
});
