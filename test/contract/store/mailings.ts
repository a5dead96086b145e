import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	deliver,
	eventOf,
	figures,
	fixedClock,
	hour,
	lease,
	mailingOf,
	messageIds,
	newField,
	newList,
	newSubscriber,
	noon,
	type OpenEmpty,
	put,
	releasedMailing,
	send,
	stateOf,
	verify,
} from './fixture.js';

export function describeMailings(open: OpenEmpty): void {
	describe('mailings', () => {
		let store: Store;
		let list_id: number;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			list_id = await newList(store);
			for (const who of ['a', 'b', 'c']) await newSubscriber(store, list_id, `${who}@example.org`);
			return () => store.close();
		});
		const staged = async (key: string, more = {}) => {
			const command = mailingOf(key, more);
			await store.writes.openMailing(command);
			await store.writes.addListToMailing({ mailing: command.id, list_id, now: noon });
			return command.id;
		};
		const release = (mailing: string, expect_count: number) =>
			store.writes.releaseMailing({ mailing, expect_count, now: noon + hour });

		it('reopens a key where it stood, and refuses another spec under it', async () => {
			const command = mailingOf('job');
			const opened = { kind: 'opened', session: { id: command.id, position: 0 } };
			expect(await store.writes.openMailing(command)).toEqual(opened);
			await store.writes.addListToMailing({ mailing: command.id, list_id, now: noon });
			await put(store, command.id, 0, ['x@example.org', 'y@example.org']);
			const again = { ...mailingOf('job'), spec: { ...command.spec } };
			const session = { id: command.id, position: 2 };
			expect(await store.writes.openMailing(again)).toEqual({ kind: 'opened', session });
			const other = { ...again, spec: { ...command.spec, subject: 'Other' } };
			expect(await store.writes.openMailing(other)).toEqual({ kind: 'conflict' });
		});

		it('gives the key of what was canceled before its release back, and of nothing else', async () => {
			const first = await staged('job');
			await store.writes.cancelMailing({ mailing: first, now: noon });
			const plain = mailingOf('job');
			const other = { ...plain, spec: { ...plain.spec, subject: 'Other' } };
			expect(await store.writes.openMailing(other)).toEqual({
				kind: 'opened',
				session: { id: other.id, position: 0 },
			});
			expect(await store.reads.mailingStatus({ id: first })).toMatchObject({ state: 'canceled' });
			await store.writes.addListToMailing({ mailing: other.id, list_id, now: noon });
			await release(other.id, 3);
			await store.writes.cancelMailing({ mailing: other.id, now: noon + hour });
			expect(await store.writes.openMailing(mailingOf('job'))).toEqual({ kind: 'conflict' });
		});

		it('refuses an unverified sender, and a campaign that another job is', async () => {
			const eve = mailingOf('eve', { from_key: 'eve@example.org' });
			expect(await store.writes.openMailing(eve)).toMatchObject({ kind: 'refused', errors: { from: [{}] } });
			const id = await staged('job');
			const taken = { ...mailingOf('other'), id };
			expect(await store.writes.openMailing(taken)).toMatchObject({
				kind: 'refused',
				errors: { campaign_unique_id: [{ code: 'unique' }] },
			});
		});

		it('stages the active subscribers of a list, counts the rest, and leases none of them', async () => {
			await store.writes.patchSubscriber({ list_id, id: 2, patch: { is_active: false }, now: noon });
			await send(store, ['c@example.org']);
			const message = await deliver(store, { kind: 'sent', reply: accepted250 });
			const other = await newList(store, 'Other');
			await newSubscriber(store, other, 'c@example.org');
			await store.writes.recordEvents({ events: [eventOf(message, 'UNSUBSCRIBED')] });
			await newSubscriber(store, other, 'x@example.org');
			const command = mailingOf('job');
			await store.writes.openMailing(command);
			const add = (list: number) =>
				store.writes.addListToMailing({ mailing: command.id, list_id: list, now: noon });
			expect(await add(list_id)).toEqual({
				position: 1,
				counts: { staged: 1, suppressed: 0, rejected: 0 },
				rejects: [],
			});
			expect(await add(other)).toMatchObject({ position: 3, counts: { staged: 1, suppressed: 1 } });
			expect(await store.reads.mailingStatus({ id: command.id })).toEqual({
				id: command.id,
				key: 'job',
				state: 'staged',
				messages: { staged: 2 },
				counts: { staged: 2, suppressed: 1, rejected: 0 },
			});
			expect(await lease(store)).toEqual([]);
			expect(await store.reads.nextDue({ scope: null })).toBeNull();
		});

		it('adds nobody twice: not from the same list, not from another', async () => {
			const mailing = await staged('job');
			const add = (list: number) => store.writes.addListToMailing({ mailing, list_id: list, now: noon });
			expect(await add(list_id)).toMatchObject({ counts: { staged: 0, suppressed: 0, rejected: 0 } });
			await newSubscriber(store, list_id, 'd@example.org');
			expect(await add(list_id)).toMatchObject({ position: 4, counts: { staged: 1 } });
			const other = await newList(store, 'Other');
			await newSubscriber(store, other, 'A@example.org');
			expect(await add(other)).toMatchObject({
				counts: { staged: 0, rejected: 1 },
				rejects: [{ row: 4, code: 'duplicate' }],
			});
			expect(await add(other)).toMatchObject({
				counts: { staged: 0, rejected: 0 },
				rejects: [{ row: 4, code: 'duplicate' }],
			});
			expect(await add(list_id)).toMatchObject({ rejects: [] });
			expect(await messageIds(store)).toHaveLength(4);
		});

		it('rejects who lacks a variable when it is strict', async () => {
			await newField(store, 'city');
			await newSubscriber(store, list_id, 'd@example.org', { meta: { city: 'Oslo' } });
			const variables = ['city', 'name', 'unsubscribe_url', 'given'];
			const command = mailingOf('job', { variables, context: { given: 'x' } });
			await store.writes.openMailing({ ...command, strict_vars: true });
			const ack = await store.writes.addListToMailing({ mailing: command.id, list_id, now: noon });
			expect(ack?.counts).toEqual({ staged: 1, suppressed: 0, rejected: 3 });
			expect(ack?.rejects[0]).toEqual({
				row: 0,
				code: 'missing_variable',
				error: 'a@example.org: no value for #city#.',
			});
		});

		it('releases nothing when the count is another', async () => {
			const mailing = await staged('job');
			expect(await release(mailing, 4)).toEqual({ kind: 'count_differs', count: 3 });
			expect(await lease(store)).toEqual([]);
			expect(await release(mailing, 3)).toEqual({ kind: 'released' });
			expect(await release(mailing, 3)).toEqual({ kind: 'released' });
			expect(await release('nobody', 3)).toEqual({ kind: 'not_found' });
		});

		it('counts messages as created when they are released', async () => {
			const mailing = await staged('job');
			expect(await figures(store)).toEqual([]);
			await release(mailing, 3);
			expect(await figures(store, { campaign: mailing })).toEqual(['2026-03-10 CREATED 3']);
			const [first = ''] = await messageIds(store);
			expect(await stateOf(store, first)).toBe('queued');
			const leased = await lease(store, { now: noon + hour });
			expect(leased.map(({ created_at }) => created_at)).toEqual([noon + hour, noon + hour, noon + hour]);
		});

		it('takes no list once it is released or canceled', async () => {
			const mailing = await releasedMailing(store, list_id, 'job');
			expect(await store.writes.addListToMailing({ mailing, list_id, now: noon })).toBeNull();
		});

		it('drops a staged mailing that is canceled', async () => {
			const mailing = await staged('job');
			expect(await store.writes.cancelMailing({ mailing, now: noon })).toBe(true);
			expect(await store.writes.cancelMailing({ mailing: 'nobody', now: noon })).toBe(false);
			expect(await release(mailing, 3)).toEqual({ kind: 'canceled' });
			expect(await store.reads.mailingStatus({ id: mailing })).toMatchObject({
				state: 'canceled',
				messages: {},
			});
			expect(await figures(store)).toEqual([]);
			expect(await store.reads.pageMessages({ page: 1, page_size: 10, filter: {} })).toEqual({
				count: 0,
				results: [],
			});
		});

		it('cancels what a released mailing has not sent, and records what was on its way', async () => {
			const mailing = await releasedMailing(store, list_id, 'job');
			await deliver(store, { kind: 'sent', reply: accepted250 });
			const [leased] = await lease(store, { max: 1 });
			await store.writes.cancelMailing({ mailing, now: noon });
			expect(await store.reads.countMessages({ scope: { mailing } })).toEqual({
				sent: 1,
				leased: 1,
				canceled: 1,
			});
			expect(await lease(store)).toEqual([]);
			const outcome = { kind: 'sent', reply: accepted250 } as const;
			const settlement = { message: leased?.message ?? '', fence: 1, at: noon, outcome };
			expect(await store.queue.settle({ settlements: [settlement] })).toEqual(['recorded']);
			expect(await store.reads.countMessages({ scope: { mailing } })).toEqual({ sent: 2, canceled: 1 });
		});

		it('ends the leases of a worker that died before a mailing was canceled', async () => {
			const mailing = await releasedMailing(store, list_id, 'job');
			await lease(store);
			await store.writes.cancelMailing({ mailing, now: noon });
			expect(await lease(store, { now: noon + 2 * hour })).toEqual([]);
			expect(await store.reads.countMessages({ scope: { mailing } })).toEqual({ canceled: 3 });
		});
	});
}
