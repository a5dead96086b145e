import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	day,
	deliver,
	eventOf,
	figures,
	fixedClock,
	lease,
	newList,
	newSubscriber,
	newUuid,
	noon,
	type OpenEmpty,
	releasedCampaign,
	send,
	stateOf,
	verify,
} from './fixture.js';

export function describeSubscriptions(open: OpenEmpty): void {
	describe('subscriptions', () => {
		let store: Store;
		let list_id: number;
		beforeEach(async () => {
			store = await open(fixedClock);
			list_id = await newList(store);
			await verify(store);
			return () => store.close();
		});
		const activity = async (id: number, list = list_id) => {
			const found = await store.reads.getSubscriber({ list_id: list, id });
			return [found?.is_active, found?.disable_reason];
		};
		const patch = (id: number, is_active: boolean) =>
			store.writes.patchSubscriber({ list_id, id, patch: { is_active }, now: noon });
		const unsubscribe = async (email: string) => {
			await send(store, [email], { type: 'BULK', list_id });
			const message = await deliver(store, { kind: 'sent', reply: accepted250 });
			await store.writes.recordEvents({ events: [eventOf(message, 'UNSUBSCRIBED')] });
			return message;
		};

		it('remember an unsubscribed address after its row or list is deleted', async () => {
			const { id } = await newSubscriber(store, list_id, 'ann@example.org');
			await unsubscribe('ann@example.org');
			await store.writes.deleteSubscriber({ list_id, id, now: noon });
			const again = await newSubscriber(store, list_id, 'ANN@example.org', { is_active: true });
			expect(await activity(again.id)).toEqual([false, 'UNSUBSCRIBED']);
			await store.writes.deleteList({ id: list_id, now: noon });
			const other = await newList(store, 'Other');
			const elsewhere = await newSubscriber(store, other, 'ann@example.org');
			expect(await activity(elsewhere.id, other)).toEqual([false, 'UNSUBSCRIBED']);
		});

		describe('to several lists', () => {
			const ann = 'ann@example.org';
			let other: number;
			let here: number;
			let there: number;
			beforeEach(async () => {
				other = await newList(store, 'Other');
				here = (await newSubscriber(store, list_id, ann)).id;
				there = (await newSubscriber(store, other, ann)).id;
			});
			const both = async () => [await activity(here), await activity(there, other)];
			const on = [true, null];
			const off = [false, 'UNSUBSCRIBED'];
			const counts = async (id: number) => {
				const list = await store.reads.getList({ id });
				return [list?.active_subscribers_count, list?.inactive_subscribers_count];
			};
			const mail = async (id: number) => {
				const campaign = await releasedCampaign(store, id, newUuid());
				const status = await store.reads.campaignStatus({ id: campaign, now: 0 });
				const given = await lease(store, { scope: { campaign } });
				return [status?.counts.staged, given.length];
			};
			const left = async () => {
				const page = { filter: { email__exact: ann }, now: noon, page: 1, page_size: 9 };
				const { results } = await store.reads.pageSuppressions(page);
				return results.map((one) => one.list_id);
			};

			it('end in a single list if the person unsubscribes from a mail to that list', async () => {
				await unsubscribe(ann);
				expect(await both()).toEqual([off, on]);
				expect([await counts(list_id), await counts(other)]).toEqual([
					[0, 1],
					[1, 0],
				]);
				expect([await mail(list_id), await mail(other)]).toEqual([
					[0, 0],
					[1, 1],
				]);
				expect(await left()).toEqual([list_id]);
			});

			it('end in every list if the person chooses all lists, or unsubscribe_scope is all', async () => {
				await send(store, [ann], { type: 'BULK', list_id });
				const message = await deliver(store, { kind: 'sent', reply: accepted250 });
				const event = eventOf(message, 'UNSUBSCRIBED', { from_all_lists: true });
				await store.writes.recordEvents({ events: [event] });
				expect([await both(), await left()]).toEqual([[off, off], [null]]);
				const bob = 'bob@example.org';
				await newSubscriber(store, list_id, bob);
				const elsewhere = await newSubscriber(store, other, bob);
				await store.writes.putSettings({ values: { unsubscribe_scope: 'all' }, now: noon });
				await unsubscribe(bob);
				expect(await activity(elsewhere.id, other)).toEqual(off);
			});

			it('can start again in one list after an unsubscription from all', async () => {
				await send(store, [ann], { type: 'BULK', list_id });
				const message = await deliver(store, { kind: 'sent', reply: accepted250 });
				const event = eventOf(message, 'UNSUBSCRIBED', { from_all_lists: true });
				await store.writes.recordEvents({ events: [event] });
				expect(await patch(here, true)).toMatchObject({ kind: 'written' });
				expect([await both(), await left()]).toEqual([[on, off], [other]]);
				await store.writes.deleteSubscriber({ list_id: other, id: there, now: noon });
				there = (await newSubscriber(store, other, ann)).id;
				expect(await activity(there, other)).toEqual(off);
			});

			it('end for the new address too if the person unsubscribes from a mail to the old address', async () => {
				await send(store, [ann], { type: 'BULK', list_id });
				const message = await deliver(store, { kind: 'sent', reply: accepted250 });
				const move = { email: 'anna@example.org' };
				await store.writes.patchSubscriber({ list_id, id: here, patch: move, now: noon });
				await store.writes.recordEvents({ events: [eventOf(message, 'UNSUBSCRIBED')] });
				expect(await both()).toEqual([off, on]);
				await store.writes.deleteSubscriber({ list_id, id: here, now: noon });
				for (const email of [ann, 'anna@example.org'])
					expect((await newSubscriber(store, list_id, email)).is_active).toBe(false);
			});
		});

		it('do not end when mail servers refuse the sender or the content', async () => {
			const { id } = await newSubscriber(store, list_id, 'ann@example.org');
			for (const days of [0, 2, 4, 6, 8, 10]) {
				const at = noon + days * day;
				await send(store, ['ann@example.org'], { now: at });
				const message = await deliver(store, { kind: 'failed', reply: busy451, uncounted: true }, at);
				await send(store, ['ann@example.org'], { now: at });
				const returned = await deliver(store, { kind: 'sent', reply: accepted250 }, at);
				const told = { hard: false, uncounted: true, smtp_code: '5.7.1', diagnostic: 'No' } as const;
				await store.writes.recordReport({
					...{ sha256: newUuid(), at, message: returned, matched: 'return_path', kind: 'bounce' },
					recipients: [{ addresses: ['ann@example.org'], ...told }],
				});
				expect([await stateOf(store, message), await stateOf(store, returned)]).toEqual(['failed', 'failed']);
			}
			expect(await activity(id)).toEqual([true, null]);
			expect((await figures(store)).join()).not.toContain('SOFTBOUNCED');
		});
	});
}
