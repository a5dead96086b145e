import { describe, expect, it } from 'vitest';
import { microsPerDay } from '../../../src/api/datetime.js';
import { deleteFieldInSlices, deleteInSlices, stoppable } from '../../../src/store/slices.js';
import { dropDeliveries } from '../../../src/store/sqlite/core.js';
import { hour, noon, submissionOf } from '../../contract/store/fixture.js';
import { memoryStore } from '../../support/memory-store.js';

const second = 2;
const deletion = { id: 1, now: noon };

function startLists({ isTrial = false } = {}) {
	const store = memoryStore({ isTrial });
	const { core } = store;
	for (const variable of ['city', 'plan'])
		core.createField({ input: { variable, name: variable }, now: noon });
	for (const name of ['News', 'Others'])
		core.createList({ input: { name, email_reason: 'asked' }, now: noon });
	for (const list_id of [1, second])
		for (let person = 0; person < 5; person += 1) {
			const input = {
				email: `p${person}@l${list_id}.test`,
				is_active: person > 0,
				meta: { city: 'Oslo', plan: 'free' },
			};
			core.createSubscriber({ list_id, input, now: noon + (person % 2) * hour });
		}
	core.createSender({ from_email: 'desk@example.org', email_key: 'desk@example.org', now: noon });
	const people = Array.from({ length: 5 }, (_, person) => `p${person}@l1.test`);
	core.acceptSubmission({ ...submissionOf(people, { type: 'BULK', list_id: 1 }), key: null });
	return {
		...store,
		left: (list_id: number) =>
			core
				.pageSubscribers({ list_id, page: 1, page_size: 9, filter: {} })
				?.results.map(({ email, meta }) => [email, Object.keys(meta)]),
		sound: () => expect(core.checkCounts({})).toEqual({ lists: [], figures: 0, campaigns: [] }),
	};
}

describe('a list with many subscribers', () => {
	it('is deleted in several transactions, and other writes succeed between them', async () => {
		const { core, writer, steps, groups, left, sound } = startLists();
		const before = groups();
		const input = { email: 'new@l2.test' };
		const deleting = deleteInSlices(steps, deletion, 2);
		const order = [
			deleting.then(() => 'deleted'),
			writer.write(() => core.createSubscriber({ list_id: second, input, now: noon })).then(() => 'created'),
		];
		expect(await Promise.race(order)).toBe('created');
		expect(await deleting).toBe(true);
		expect(groups() - before).toBeGreaterThanOrEqual(4);
		expect(core.getList({ id: 1 })).toBeNull();
		expect(left(second)).toHaveLength(6);
		sound();
		expect(await deleteInSlices(steps, deletion, 2)).toBe(false);
	});

	it('has no waiting mail after an interrupted deletion, and the next call completes the deletion', async () => {
		const { core, steps, failAfter, left, sound } = startLists();
		failAfter(2);
		await expect(deleteInSlices(steps, deletion, 2)).rejects.toThrow('the process was killed');
		expect(left(1)).toHaveLength(1);
		expect(core.countMessages({ scope: null })).toEqual({ canceled: 4 });
		sound();
		expect(await deleteInSlices(steps, deletion, 2)).toBe(true);
		sound();
	});

	it('is only partly deleted if the caller disconnects, and the next call completes the deletion', async () => {
		const { core, writer, steps, left, sound } = startLists();
		const gone = new AbortController();
		const deleting = deleteInSlices(stoppable(steps, { signal: gone.signal }), deletion, 2);
		await writer.write(() => undefined);
		gone.abort(new Error('the client has gone'));
		await expect(deleting).rejects.toThrow('the client has gone');
		expect(left(1)?.length).toBeGreaterThan(0);
		expect(core.getList({ id: 1 })).not.toBeNull();
		sound();
		expect(await deleteInSlices(steps, deletion, 2)).toBe(true);
	});
});

describe('a field with many values', () => {
	it('exists until its last value is removed, and a second deletion continues the first', async () => {
		const { core, steps, failAfter, left } = startLists();
		const kept = () =>
			[1, second].flatMap((list) => left(list) ?? []).filter(([, meta]) => meta?.length === 2);
		failAfter(3);
		await expect(deleteFieldInSlices(steps, { id: 1 }, 2)).rejects.toThrow('the process was killed');
		expect(kept()).toHaveLength(4);
		expect(core.getField({ id: 1 })).toMatchObject({ variable: 'city' });
		expect(await deleteFieldInSlices(steps, { id: 1 }, 2)).toBe(true);
		expect(kept()).toEqual([]);
		expect(core.getField({ id: 1 })).toBeNull();
		expect(await deleteFieldInSlices(steps, { id: 1 }, 2)).toBe(false);
	});
});

const now = 100 * microsPerDay;

it('the log of notifications is kept for 30 days, and deleted in slices', () => {
	const { sql } = memoryStore();
	const hook = (id: number, stopped_at: number | null) =>
		sql.run(
			`INSERT INTO webhooks (id, url, type, is_auth_enabled, login, password, created_at, stopped_at)
			VALUES (?, 'https://hooks.example.com/', 'OPENED', 0, '', '', 0, ?)`,
			[id, stopped_at],
		);
	hook(1, null);
	hook(2, now);
	const add = (name: string, webhook_id: number, days: number, due_at: number | null) =>
		sql.run(
			`INSERT INTO webhook_deliveries (uuid, webhook_id, payload, state, due_at, created_at)
			VALUES (?, ?, '{}', 'pending', ?, ?)`,
			[name, webhook_id, due_at, now - days * microsPerDay],
		);
	add('fresh', 1, 29, null);
	add('old', 1, 30, null);
	add('older', 1, 40, null);
	add('old and waiting', 1, 40, now);
	add('old and stopped', 2, 40, now);
	add('fresh and stopped', 2, 2, now);
	add('of a deleted webhook', 3, 0, now);
	sql.run(
		"INSERT INTO webhook_attempts SELECT id, 1, 0, 200, NULL, 1 FROM webhook_deliveries WHERE uuid = 'old'",
	);
	expect(dropDeliveries(sql, { now, limit: 2 }).changes).toBe(2);
	expect(dropDeliveries(sql, { now, limit: 99 }).changes).toBe(2);
	expect(dropDeliveries(sql, { now, limit: 99 }).changes).toBe(0);
	const left = sql.tuples('SELECT uuid FROM webhook_deliveries ORDER BY id');
	expect(left.flat()).toEqual(['fresh', 'old and waiting', 'fresh and stopped']);
	expect(sql.number('SELECT count(*) FROM webhook_attempts')).toBe(0);
});
