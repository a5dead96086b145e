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
			it(`moves a message from leased to ${state}, which is final`, async () => {
				const id = await one();
				await deliver(store, outcome);
				expect(await stateOf(store, id)).toBe(state);
				expect(await lease(store, { now: noon + 99 * hour })).toEqual([]);
				expect(await store.reads.nextDue({ scope: null })).toBeNull();
			});
		}

		it('moves a message from queued to leased, for one worker only', async () => {
			const id = await one();
			expect(await stateOf(store, id)).toBe('queued');
			expect(await lease(store)).toMatchObject([{ message: id, fence: 1, attempts: 0, to: 'a@example.org' }]);
			expect(await stateOf(store, id)).toBe('leased');
			expect(await lease(store, { owner: 'another' })).toEqual([]);
		});

		it('moves a message from leased to deferred, and leases the message again when it is due', async () => {
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

		it('leases a message again after its lease has expired, and rejects the former owner', async () => {
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

		it('renews a lease only for its owner', async () => {
			const id = await one();
			await lease(store);
			const until = noon + 3 * hour;
			await store.queue.renew({ owner: 'another', fences: [{ message: id, fence: 1 }], now: noon, until });
			expect(await store.reads.nextDue({ scope: null })).toBe(noon + hour);
			await store.queue.renew({ owner: 'worker', fences: [{ message: id, fence: 1 }], now: noon, until });
			expect(await lease(store, { now: noon + 2 * hour })).toEqual([]);
		});

		const replyOf = async (id = '') => (await store.reads.getMessage({ id }))?.message.last_reply;

		it('cancels a bulk message to an unsubscribed address, and leases the next message instead', async () => {
			const bulk = await send(store, ['a@example.org', 'b@example.org'], { type: 'BULK' });
			const ids = bulk.answer.messages.map(({ id }) => id);
			await store.writes.recordEvents({ events: [eventOf(ids[0] ?? '', 'UNSUBSCRIBED')] });
			expect((await lease(store, { max: 1 })).map(({ message }) => message)).toEqual([ids[1]]);
			expect(await stateOf(store, ids[0] ?? '')).toBe('canceled');
			expect(await replyOf(ids[0])).toBe(
				'not sent: the address is suppressed, UNSUBSCRIBED since 2026-03-10T12:00:00Z',
			);
		});

		it('cancels deferred bulk mail after an unsubscription', async () => {
			await send(store, ['a@example.org'], { type: 'BULK' });
			const id = await deliver(store, { kind: 'deferred', reply: busy451, due_at: noon + 1 });
			await store.writes.recordEvents({ events: [eventOf(id, 'UNSUBSCRIBED')] });
			expect(await lease(store, { now: noon + hour })).toEqual([]);
			expect(await stateOf(store, id)).toBe('canceled');
		});

		it('cancels bulk mail to deleted or inactive people, and keeps transactional mail', async () => {
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

		it('returns one result for each reported delivery, in the same order, even for an unknown message', async () => {
			const id = await one();
			await lease(store);
			const outcome = { kind: 'sent', reply: accepted250 } as const;
			const settlements = ['nobody', id].map((message) => ({ message, fence: 1, at: noon, outcome }));
			expect(await store.queue.settle({ settlements })).toEqual(['lost_lease', 'recorded']);
		});

		it('leases transactional mail first, then takes messages evenly from the campaigns', async () => {
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

		it('leases messages of each campaign in turn if there are more campaigns than leases', async () => {
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

		it('leases only messages of the given submission or campaign', async () => {
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

export function describeQueuePauses(open: OpenEmpty): void {
	describe('a queue that can pause', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			return () => store.close();
		});
		const pause = (reason: string | null = null, now = noon) =>
			store.queue.pause({ kind: 'manual', reason, retry_at: null, now });
		const fault = (reason: string, retry_at: number, now = noon) =>
			store.queue.pause({ kind: 'fault', reason, retry_at, now });

		it('leases nothing while paused, and loses no message', async () => {
			await send(store, ['a@example.org']);
			await pause('moving house');
			expect(await lease(store)).toEqual([]);
			expect(await store.reads.queuePauses()).toEqual([
				{ kind: 'manual', reason: 'moving house', since: noon, retry_at: null, faults: 0 },
			]);
			expect(await store.queue.resume({ kinds: ['manual'] })).toBe(true);
			expect(await store.queue.resume({ kinds: ['manual'] })).toBe(false);
			expect(await lease(store)).toMatchObject([{ to: 'a@example.org', attempts: 0 }]);
		});

		it('counts consecutive faults of the mail server, and keeps the latest retry time', async () => {
			await send(store, ['a@example.org']);
			await fault('connect: refused', noon + hour);
			await fault('auth: 535 No', noon + 1, noon + hour);
			expect(await store.reads.queuePauses()).toEqual([
				{ kind: 'fault', reason: 'auth: 535 No', since: noon, retry_at: noon + hour, faults: 2 },
			]);
			expect(await lease(store)).toHaveLength(1);
			await store.queue.resume({ kinds: ['fault'] });
			expect(await store.reads.queuePauses()).toEqual([]);
		});

		it('does not pause if servers refuse the sender, but counts these refusals until a worker calls resume', async () => {
			const refuse = (reason: string) =>
				store.queue.pause({ kind: 'refusal', reason, retry_at: null, now: noon });
			await refuse('mail: 553 No');
			expect(await refuse('mail: 554 No')).toMatchObject({ reason: 'mail: 554 No', faults: 2 });
			await send(store, ['a@example.org']);
			expect(await lease(store)).toHaveLength(1);
			expect((await store.reads.queueState({ now: noon })).pauses).toEqual([]);
			expect(await store.queue.resume({ kinds: ['fault', 'refusal'] })).toBe(false);
			expect(await refuse('mail: 553 No')).toMatchObject({ faults: 1 });
			await store.writes.putSettings({ values: { smtp_url: 'smtp://other.example' }, now: noon });
			expect(await store.reads.queuePauses()).toEqual([]);
		});

		it('makes a deferred message due on resume only if a server refused its sender', async () => {
			const said = (code: number, enhanced: string | null) =>
				({ phase: 'rcpt', code, enhanced, text: 'No' }) as const;
			const replies = [said(550, '5.7.1'), said(554, null), said(552, '5.7.0'), said(552, null), busy451];
			await send(
				store,
				replies.map((_, at) => `r${at}@slow.example`),
			);
			for (const reply of replies) await deliver(store, { kind: 'deferred', reply, due_at: noon + 3 * hour });
			expect((await store.reads.queueState({ now: noon })).deferred).toMatchObject([{ messages: 2 }]);
			expect(await lease(store, { now: noon + hour })).toEqual([]);
			await store.queue.resume({ kinds: ['fault', 'refusal'] });
			expect(await lease(store, { now: noon + hour })).toEqual([]);
			await store.queue.resume({ kinds: ['manual', 'fault', 'refusal'], retry_at: noon + hour });
			const due = await lease(store, { now: noon + hour });
			expect(due.map(({ to }) => to)).toEqual(['r0@slow.example', 'r1@slow.example', 'r2@slow.example']);
		});

		it('waits before it leases a message that a worker gave back, and counts no attempt', async () => {
			await send(store, ['a@example.org']);
			await deliver(store, { kind: 'released', why: 'infrastructure', due_at: noon + hour });
			expect(await lease(store)).toEqual([]);
			expect(await lease(store, { now: noon + hour })).toMatchObject([{ attempts: 0 }]);
		});
	});
}
