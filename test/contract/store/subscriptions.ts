import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	day,
	deliver,
	eventOf,
	fixedClock,
	newList,
	newSubscriber,
	noon,
	type OpenEmpty,
	send,
	unknown550,
	verify,
} from './fixture.js';

export function describeSubscriptions(open: OpenEmpty): void {
	describe('who gets mail', () => {
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
		const bounce = async (email: string) => {
			await send(store, [email]);
			return deliver(store, { kind: 'bounced', reply: unknown550, suppress: true });
		};

		it('gives no reason to who is made inactive by hand', async () => {
			const { id } = await newSubscriber(store, list_id, 'ann@example.org');
			await patch(id, false);
			expect(await activity(id)).toEqual([false, null]);
			await patch(id, true);
			expect(await activity(id)).toEqual([true, null]);
		});

		it('makes the unsubscribed inactive, until somebody says otherwise', async () => {
			const { id } = await newSubscriber(store, list_id, 'ann@example.org');
			await unsubscribe('ann@example.org');
			expect(await activity(id)).toEqual([false, 'UNSUBSCRIBED']);
			await patch(id, false);
			expect(await activity(id)).toEqual([false, 'UNSUBSCRIBED']);
			await patch(id, true);
			expect(await activity(id)).toEqual([true, null]);
			expect((await send(store, ['ann@example.org'], { type: 'BULK' })).answer.messages_created).toBe(1);
		});

		it('remembers an address when its row or its list is gone', async () => {
			const { id } = await newSubscriber(store, list_id, 'ann@example.org');
			await unsubscribe('ann@example.org');
			await store.writes.deleteSubscriber({ list_id, id, now: noon });
			const again = await newSubscriber(store, list_id, 'ANN@example.org', { is_active: true });
			expect(await activity(again.id)).toEqual([false, 'UNSUBSCRIBED']);
			const other = await newList(store, 'Other');
			const elsewhere = await newSubscriber(store, other, 'ann@example.org');
			expect(await activity(elsewhere.id, other)).toEqual([false, 'UNSUBSCRIBED']);
		});

		it('makes inactive whoever moves to a suppressed address', async () => {
			await newSubscriber(store, list_id, 'ann@example.org');
			await unsubscribe('ann@example.org');
			await store.writes.deleteSubscriber({ list_id, id: 1, now: noon });
			const bob = await newSubscriber(store, list_id, 'bob@example.org');
			await store.writes.patchSubscriber({
				list_id,
				id: bob.id,
				patch: { email: 'ann@example.org' },
				now: noon,
			});
			expect(await activity(bob.id)).toEqual([false, 'UNSUBSCRIBED']);
		});

		it('makes a hard-bounced address inactive in every list, and refuses to activate it by hand', async () => {
			const { id } = await newSubscriber(store, list_id, 'ann@example.org');
			const other = await newList(store, 'Other');
			const elsewhere = await newSubscriber(store, other, 'ann@example.org');
			await bounce('ann@example.org');
			expect(await activity(id)).toEqual([false, 'HARDBOUNCED']);
			expect(await activity(elsewhere.id, other)).toEqual([false, 'HARDBOUNCED']);
			expect((await store.reads.getList({ id: other }))?.inactive_subscribers_count).toBe(1);
			expect(await patch(id, true)).toMatchObject({
				kind: 'refused',
				errors: { is_active: [{ code: 'suppressed' }] },
			});
			expect((await store.reads.status()).suppressions).toBe(1);
		});

		it('unsubscribes everywhere when the message belonged to no list', async () => {
			const other = await newList(store, 'Other');
			const here = await newSubscriber(store, list_id, 'ann@example.org');
			const there = await newSubscriber(store, other, 'ann@example.org');
			await send(store, ['ann@example.org'], { type: 'BULK' });
			const message = await deliver(store, { kind: 'sent', reply: accepted250 });
			await store.writes.recordEvents({ events: [eventOf(message, 'UNSUBSCRIBED')] });
			expect(await activity(here.id)).toEqual([false, 'UNSUBSCRIBED']);
			expect(await activity(there.id, other)).toEqual([false, 'UNSUBSCRIBED']);
		});

		it('unsubscribes again who came back and follows an old link', async () => {
			const { id } = await newSubscriber(store, list_id, 'ann@example.org');
			const message = await unsubscribe('ann@example.org');
			await patch(id, true);
			await store.writes.recordEvents({ events: [eventOf(message, 'UNSUBSCRIBED', { at: noon + day })] });
			expect(await activity(id)).toEqual([false, 'UNSUBSCRIBED']);
		});

		it('disables after five soft bounces in a row over a week, and not before', async () => {
			const { id } = await newSubscriber(store, list_id, 'ann@example.org');
			const fail = async (at: number) => {
				await send(store, ['ann@example.org'], { now: at });
				await deliver(store, { kind: 'failed', reply: busy451 }, at);
			};
			for (const days of [0, 1, 2, 3, 6]) await fail(noon + days * day);
			expect(await activity(id)).toEqual([true, null]);
			await fail(noon + 7 * day);
			expect(await activity(id)).toEqual([false, 'SOFTBOUNCED']);
			await patch(id, true);
			expect(await activity(id)).toEqual([true, null]);
		});

		it('starts a run of soft bounces anew when a message arrives', async () => {
			const { id } = await newSubscriber(store, list_id, 'ann@example.org');
			for (const days of [0, 2, 4, 6, 8, 10]) {
				const at = noon + days * day;
				await send(store, ['ann@example.org'], { now: at });
				if (days === 6) await deliver(store, { kind: 'sent', reply: accepted250 }, at);
				else await deliver(store, { kind: 'failed', reply: busy451 }, at);
			}
			expect(await activity(id)).toEqual([true, null]);
		});

		it('takes a late bounce report as it takes one at once', async () => {
			const { id } = await newSubscriber(store, list_id, 'ann@example.org');
			await send(store, ['ann@example.org']);
			const message = await deliver(store, { kind: 'sent', reply: accepted250 });
			await store.writes.recordEvents({ events: [eventOf(message, 'HARDBOUNCED', { smtp_code: '5.1.1' })] });
			expect(await activity(id)).toEqual([false, 'HARDBOUNCED']);
			expect((await store.reads.getMessage({ id: message }))?.message.state).toBe('sent');
		});
	});
}
