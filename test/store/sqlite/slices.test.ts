/** A large batch of an import is committed in slices; whoever puts it sees one batch. */
import { hostname } from 'node:os';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Core, createCore } from '../../../src/store/sqlite/core.js';
import { migrate } from '../../../src/store/sqlite/migrations.js';
import { createSliceSize, putInSlices } from '../../../src/store/sqlite/slices.js';
import { createSql } from '../../../src/store/sqlite/sql.js';
import { createWriter, type Writer } from '../../../src/store/sqlite/writer.js';
import { newUuid, noon } from '../../contract/store/fixture.js';

const twoRows = { rows: () => 2, took: () => undefined };

describe('a batch in slices', () => {
	let core: Core;
	let writer: Writer;
	let groups: number;
	let failIn: number;
	const id = newUuid();
	beforeEach(() => {
		const db = new Database(':memory:');
		const me = { id: 'me', role: 'cli', host: hostname(), pid: process.pid };
		migrate(db, { path: ':memory:', me, now: noon });
		core = createCore(createSql(db));
		groups = 0;
		failIn = Number.NaN;
		writer = createWriter({
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
		return () => db.close();
	});
	const put = (first: number, ...cells: string[]) =>
		putInSlices(
			core,
			writer,
			{ session: id, batch: { first, columns: ['email'], cells }, now: noon },
			twoRows,
		);
	const people = ['a@x.org', 'b@x.org', 'a@x.org', 'no address', 'c@x.org'];
	const whole = {
		kind: 'acknowledged',
		ack: {
			position: 5,
			counts: { created: 3, updated: 0, unchanged: 0, duplicate: 1, rejected: 1 },
			rejects: [
				{ row: 2, code: 'duplicate' },
				{ row: 3, code: 'invalid' },
			],
		},
	};

	it('takes a commit a slice and one answer', async () => {
		expect(await put(0, ...people)).toMatchObject(whole);
		expect(groups).toBe(3);
	});

	it('is answered the same when it is put again, and the next one follows it', async () => {
		const answer = await put(0, ...people);
		expect(await put(0, ...people)).toEqual(answer);
		expect(await put(5, 'd@x.org')).toMatchObject({ ack: { position: 6, counts: { created: 1 } } });
		expect(await put(9, 'e@x.org')).toEqual({ kind: 'gap', position: 6 });
	});

	it('goes on where it was broken off', async () => {
		failIn = 2;
		await expect(put(0, ...people)).rejects.toThrow('the disk is full');
		expect(await put(9, 'e@x.org')).toEqual({ kind: 'gap', position: 2 });
		expect(await put(0, ...people)).toMatchObject(whole);
		expect(core.getList({ id: 1 })?.active_subscribers_count).toBe(3);
	});

	it('may be empty', async () => {
		expect(await put(0)).toMatchObject({ kind: 'acknowledged', ack: { position: 0, rejects: [] } });
		expect(groups).toBe(1);
	});
});

describe('the size of a slice', () => {
	it('follows what rows took, by halves and doubles at most, and never vanishes', () => {
		const size = createSliceSize(() => 200);
		const learned = (rows: number, heldMs: number) => {
			size.took(rows, heldMs);
			return size.rows();
		};
		expect(size.rows()).toBe(1_000);
		expect(learned(1_000, 20)).toBe(2_000);
		expect(learned(2_000, 250)).toBe(1_600);
		expect(learned(1_600, 4_000)).toBe(800);
		expect(learned(300, 4_000)).toBe(250);
		expect(learned(100, 4_000)).toBe(250);
	});
});
