import { beforeEach, describe, expect, it } from 'vitest';
import type { DeliveryOutcome } from '../../../src/engine/rules/outcomes.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	deliver,
	eventOf,
	fixedClock,
	hour,
	lease,
	newList,
	newSubscriber,
	noon,
	type OpenEmpty,
	releasedCampaign,
	send,
	stateOf,
	unknown550,
	verify,
} from './fixture.js';

export function describeQueue(open: OpenEmpty): void {
	describe('the queue', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			return () => store.close();
		});
		const one = async () => (await send(store, ['a@example.org'])).answer.messages[0]?.id ?? '';

		const finals: { outcome: DeliveryOutcome; state: string }[] = [
			{ outcome: { kind: 'sent', reply: accepted250 }, state: 'sent' },
			{ outcome: { kind: 'bounced', reply: unknown550, suppress: false }, state: 'bounced' },
			{ outcome: { kind: 'failed', reply: unknown550 }, state: 'failed' },
			{ outcome: { kind: 'uncertain', reply: busy451 }, state: 'uncertain' },
		];
		for (const { outcome, state } of finals) {
			it(`goes from leased to ${state}, which is final`, async () => {
				const id = await one();
				await deliver(store, outcome);
				expect(await stateOf(store, id)).toBe(state);
				expect(await lease(store, { now: noon + 99 * hour })).toEqual([]);
				expect(await store.reads.nextDue({ scope: null })).toBeNull();
			});
		}

		it('counts the tries of a failed message that a person retries from then on', async () => {
			const id = await one();
			const busy = { kind: 'deferred', reply: busy451, due_at: noon } as const;
			const began = async (now: number) => (await lease(store, { now }))[0]?.created_at;
			const settle = async (outcome: DeliveryOutcome, at: number) => {
				const fence = (await store.reads.getMessage({ id }))?.message.attempts ?? 0;
				await store.queue.settle({ settlements: [{ message: id, fence: fence + 1, at, outcome }] });
			};
			expect(await began(noon)).toBe(noon);
			await settle(busy, noon);
			expect(await began(noon + hour)).toBe(noon);
			await settle({ kind: 'failed', reply: busy451 }, noon + hour);
			const later = noon + 9 * 24 * hour;
			await store.writes.changeMessage({ id, action: 'retry', now: later });
			expect(await began(later)).toBe(later);
			await settle(busy, later);
			expect(await began(later + hour)).toBe(later);
		});

		it('goes from queued to leased, and to nobody else meanwhile', async () => {
			const id = await one();
			expect(await stateOf(store, id)).toBe('queued');
			expect(await lease(store)).toMatchObject([{ message: id, fence: 1, attempts: 0, to: 'a@example.org' }]);
			expect(await stateOf(store, id)).toBe('leased');
			expect(await lease(store, { owner: 'another' })).toEqual([]);
		});

		it('goes from leased to deferred, and comes back when it is due', async () => {
			const id = await one();
			await deliver(store, { kind: 'deferred', reply: busy451, due_at: noon + hour });
			expect((await store.reads.getMessage({ id }))?.message).toMatchObject({
				state: 'deferred',
				attempts: 1,
				due_at: '2026-03-10T13:00:00.000000',
				last_reply: '451 4.7.1 Try again later',
			});
			expect(await store.reads.nextDue({ scope: null })).toBe(noon + hour);
			expect(await lease(store, { now: noon + hour - 1 })).toEqual([]);
			expect(await lease(store, { now: noon + hour })).toMatchObject([
				{ message: id, fence: 2, attempts: 1 },
			]);
		});

		it('gives a released message back as it was', async () => {
			const id = await one();
			await deliver(store, { kind: 'released', why: 'drain' });
			expect(await stateOf(store, id)).toBe('queued');
			await deliver(store, { kind: 'deferred', reply: busy451, due_at: noon + 1 });
			await deliver(store, { kind: 'released', why: 'infrastructure' }, noon + hour);
			const found = await store.reads.getMessage({ id });
			expect(found?.message).toMatchObject({ state: 'deferred', due_at: '2026-03-10T12:00:00.000001' });
			expect(found?.attempts).toHaveLength(1);
		});

		it('returns an expired lease to the queue, and takes nothing from who held it', async () => {
			const id = await one();
			const [late] = await lease(store);
			const [next] = await lease(store, { now: noon + hour, owner: 'another' });
			expect([next?.message, next?.fence, next?.attempts]).toEqual([id, 2, 0]);
			const at = noon + 2 * hour;
			const settle = (fence: number) =>
				store.queue.settle({
					settlements: [{ message: id, fence, at, outcome: { kind: 'sent', reply: accepted250 } }],
				});
			expect(await settle(late?.fence ?? 0)).toEqual(['lost_lease']);
			expect(await stateOf(store, id)).toBe('leased');
			expect(await settle(2)).toEqual(['recorded']);
			expect(await settle(2)).toEqual(['lost_lease']);
		});

		it('keeps a lease that is renewed, for its owner and fence only', async () => {
			const id = await one();
			await lease(store);
			const until = noon + 3 * hour;
			await store.queue.renew({ owner: 'another', fences: [{ message: id, fence: 1 }], now: noon, until });
			expect(await store.reads.nextDue({ scope: null })).toBe(noon + hour);
			await store.queue.renew({ owner: 'worker', fences: [{ message: id, fence: 1 }], now: noon, until });
			expect(await lease(store, { now: noon + 2 * hour })).toEqual([]);
		});

		const replyOf = async (id = '') => (await store.reads.getMessage({ id }))?.message.last_reply;

		it('cancels bulk mail at the lease to who unsubscribed since, and fills the place', async () => {
			const bulk = await send(store, ['a@example.org', 'b@example.org'], { type: 'BULK' });
			const ids = bulk.answer.messages.map(({ id }) => id);
			await store.writes.recordEvents({ events: [eventOf(ids[0] ?? '', 'UNSUBSCRIBED')] });
			expect((await lease(store, { max: 1 })).map(({ message }) => message)).toEqual([ids[1]]);
			expect(await stateOf(store, ids[0] ?? '')).toBe('canceled');
			expect(await replyOf(ids[0])).toBe(
				'not sent: the address is suppressed, UNSUBSCRIBED since 2026-03-10T12:00:00Z',
			);
		});

		it('cancels deferred bulk mail to who unsubscribed since', async () => {
			await send(store, ['a@example.org'], { type: 'BULK' });
			const id = await deliver(store, { kind: 'deferred', reply: busy451, due_at: noon + 1 });
			await store.writes.recordEvents({ events: [eventOf(id, 'UNSUBSCRIBED')] });
			expect(await lease(store, { now: noon + hour })).toEqual([]);
			expect(await stateOf(store, id)).toBe('canceled');
		});

		it('cancels waiting bulk mail to who is deleted or made inactive, and keeps personal mail', async () => {
			const list_id = await newList(store);
			const ann = await newSubscriber(store, list_id, 'a@example.org');
			const bob = await newSubscriber(store, list_id, 'b@example.org');
			const bulk = await send(store, ['a@example.org', 'b@example.org'], { type: 'BULK', list_id });
			const personal = await send(store, ['a@example.org'], { list_id });
			await store.writes.deleteSubscriber({ list_id, id: ann.id, now: noon });
			const ids = [...bulk.answer.messages, ...personal.answer.messages].map(({ id }) => id);
			expect(await stateOf(store, ids[0] ?? '')).toBe('canceled');
			await store.writes.patchSubscriber({ list_id, id: bob.id, patch: { is_active: false }, now: noon });
			expect((await lease(store)).map(({ message }) => message)).toEqual([ids[2]]);
			expect(await stateOf(store, ids[1] ?? '')).toBe('canceled');
			expect([await replyOf(ids[0]), await replyOf(ids[1])]).toEqual([
				'not sent: the subscriber was deleted',
				'not sent: the subscriber is inactive',
			]);
		});

		it('records what was sent to who was deleted while it was on its way', async () => {
			const list_id = await newList(store);
			const { id } = await newSubscriber(store, list_id, 'a@example.org');
			await send(store, ['a@example.org'], { type: 'BULK', list_id });
			const [leased] = await lease(store);
			await store.writes.deleteSubscriber({ list_id, id, now: noon });
			const message = leased?.message ?? '';
			const sent = { message, fence: 1, at: noon, outcome: { kind: 'sent', reply: accepted250 } as const };
			expect(await store.queue.settle({ settlements: [sent] })).toEqual(['recorded']);
		});

		it('writes every attempt with its reply', async () => {
			const id = await one();
			await deliver(store, { kind: 'deferred', reply: busy451, due_at: noon + 1 });
			await deliver(store, { kind: 'sent', reply: accepted250 }, noon + hour);
			const found = await store.reads.getMessage({ id });
			expect(found?.attempts).toEqual([
				{ number: 1, at: '2026-03-10T12:00:00.000000', outcome: 'deferred', ...busy451 },
				{ number: 2, at: '2026-03-10T13:00:00.000000', outcome: 'sent', ...accepted250 },
			]);
			expect(found?.message).toMatchObject({ date_sent: '2026-03-10T13:00:00.000000', due_at: null });
		});

		it('answers settlements in their order, unknown messages too', async () => {
			const id = await one();
			await lease(store);
			const outcome = { kind: 'sent', reply: accepted250 } as const;
			const settlements = ['nobody', id].map((message) => ({ message, fence: 1, at: noon, outcome }));
			expect(await store.queue.settle({ settlements })).toEqual(['lost_lease', 'recorded']);
		});

		it('leases personal mail first, then each campaign its share', async () => {
			const [small, large] = [await newList(store), await newList(store, 'Large')];
			for (let index = 0; index < 8; index++) await newSubscriber(store, large, `l${index}@example.org`);
			for (let index = 0; index < 2; index++) await newSubscriber(store, small, `s${index}@example.org`);
			await releasedCampaign(store, large, 'large');
			await releasedCampaign(store, small, 'small');
			await send(store, ['person@example.org']);
			const initials = (await lease(store, { max: 6 })).map(({ to }) => to[0]);
			expect(initials[0]).toBe('p');
			expect(initials.filter((letter) => letter === 's')).toHaveLength(2);
			expect(initials.filter((letter) => letter === 'l')).toHaveLength(3);
		});

		it('lets every campaign have its turn when places are fewer than campaigns', async () => {
			for (const name of ['a', 'b', 'c']) {
				const list = await newList(store, name);
				for (const index of [1, 2]) await newSubscriber(store, list, `${name}${index}@example.org`);
				await releasedCampaign(store, list, name);
			}
			const turns: string[] = [];
			for (let turn = 0; turn < 3; turn++) {
				const [leased] = await lease(store, { max: 1, now: noon + turn });
				turns.push(leased?.to[0] ?? '');
			}
			expect(turns.sort()).toEqual(['a', 'b', 'c']);
		});

		it('leases only what a scope names', async () => {
			const list = await newList(store);
			await newSubscriber(store, list, 'm@example.org');
			const campaign = await releasedCampaign(store, list, 'job');
			const first = await send(store, ['a@example.org']);
			await send(store, ['b@example.org'], { now: noon - hour });
			const to = async (scope: { submission: string } | { campaign: string }) => {
				expect(await store.reads.nextDue({ scope })).toBe(noon);
				return (await lease(store, { scope })).map((leased) => leased.to);
			};
			expect(await to({ submission: first.submission })).toEqual(['a@example.org']);
			expect(await to({ campaign })).toEqual(['m@example.org']);
			expect(await lease(store, { scope: { submission: 'nobody' } })).toEqual([]);
		});
	});
}
