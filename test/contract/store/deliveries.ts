import { beforeEach, describe, expect, it } from 'vitest';
import type { WebhookInput } from '../../../src/api/inputs.js';
import type { DeliveryResult, LeasedDelivery } from '../../../src/store/queue.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	day,
	deliver,
	eventOf,
	fixedClock,
	hour,
	noon,
	type OpenEmpty,
	recordOf,
	send,
	verify,
} from './fixture.js';

const ok = { status: 200, error: null, answer: 'thanks', duration_ms: 12 };
const failing = { status: 503, error: null, answer: 'later', duration_ms: 7 };

export function describeDeliveries(open: OpenEmpty): void {
	describe('webhook deliveries', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			return () => store.close();
		});
		const hookOf = async (type: WebhookInput['type'], url = 'https://hooks.example.com/in') => {
			const input = { url, type, is_auth_enabled: false, login: '', password: '' };
			return recordOf(await store.writes.createWebhook({ input, now: noon })).id;
		};
		const sent = async (more = {}) => {
			await send(store, ['ann@example.org'], more);
			return deliver(store, { kind: 'sent', reply: accepted250 });
		};
		const opened = async (message: string, more = {}) =>
			store.writes.recordEvents({ events: [eventOf(message, 'OPENED', more)] });
		const lease = (more: { now?: number; max?: number; each?: number; shares?: [number, number][] } = {}) => {
			const { now = noon, max = 100, each = 100, shares = [] } = more;
			const listed = shares.map(([webhook_id, share]) => ({ webhook_id, max: share }));
			const command = { owner: 'sender', now, until: now + hour, max, each, shares: listed };
			return store.writes.leaseDeliveries(command).then(({ deliveries }) => deliveries);
		};
		const settle = ({ delivery, fence }: LeasedDelivery, result: DeliveryResult, at = noon) =>
			store.writes.settleDeliveries({ settlements: [{ delivery, fence, at, result }] });
		const page = async (webhook_id: number, more: { state?: 'failed' | 'stopped'; since?: number } = {}) => {
			const { state = null, since = null } = more;
			return (await store.reads.pageDeliveries({ webhook_id, state, since, page: 1, page_size: 100 }))
				.results;
		};
		const one = async () => {
			const hook = await hookOf('OPENED');
			const message = await sent();
			await opened(message);
			const [leased] = await lease();
			if (leased === undefined) throw new Error('nothing leased');
			return { hook, message, leased };
		};

		it('are created only for webhooks of the event’s type, with the body that api-decisions 32 specifies', async () => {
			await hookOf('UNSUBSCRIBED');
			const hook = await hookOf('OPENED');
			const message = await sent({ tag: 'spring' });
			await opened(message, { ip: '192.0.2.7', user_agent: 'Mail', at: noon + 1 });
			const all = await lease({ now: noon + hour });
			expect(all).toHaveLength(1);
			expect(all[0]).toMatchObject({ webhook_id: hook, fence: 1, attempts: 0, credentials: null });
			expect(JSON.parse(all[0]?.payload ?? '')).toEqual({
				id: all[0]?.delivery,
				type: 'OPENED',
				date: '2026-03-10T12:00:00.000001',
				test: false,
				message: {
					id: message,
					to: 'ann@example.org',
					from: 'Desk <desk@example.org>',
					subject: 'Hi',
					tag: 'spring',
					campaign_unique_id: null,
				},
				data: {
					url: null,
					ip: '192.0.2.7',
					user_agent: 'Mail',
					machine: false,
					smtp_code: null,
					diagnostic: null,
				},
			});
		});

		it('report only the first click on each link, once for people and once for bots', async () => {
			await hookOf('REDIRECTED');
			const message = await sent();
			const click = (link: number, machine: boolean) =>
				eventOf(message, 'REDIRECTED', { link, machine, url: `https://example.com/${link}` });
			const events = [click(0, true), click(0, true), click(0, false), click(0, false), click(1, false)];
			await store.writes.recordEvents({ events });
			const told = (await lease()).map(({ payload }) => JSON.parse(payload).data);
			expect(told.map(({ url, machine }) => [url, machine])).toEqual([
				['https://example.com/0', true],
				['https://example.com/0', false],
				['https://example.com/1', false],
			]);
		});

		it('record each attempt, and wait before the next attempt', async () => {
			const { hook, message, leased } = await one();
			await settle(leased, { kind: 'again', answer: failing, due_at: noon + hour });
			expect(await lease()).toEqual([]);
			const [again] = await lease({ now: noon + hour });
			expect(again).toMatchObject({ delivery: leased.delivery, attempts: 1 });
			if (again === undefined) throw new Error('not due');
			await settle(again, { kind: 'delivered', answer: ok }, noon + hour);
			const detail = await store.reads.getDelivery({ webhook_id: hook, id: leased.delivery });
			expect(detail).toEqual({
				id: leased.delivery,
				webhook_id: hook,
				type: 'OPENED',
				message_id: message,
				state: 'delivered',
				attempts: 2,
				last_status: 200,
				last_error: null,
				answer_excerpt: 'thanks',
				due_at: null,
				date_created: '2026-03-10T12:00:00.000000',
				date_attempted: '2026-03-10T13:00:00.000000',
				date_finished: '2026-03-10T13:00:00.000000',
				payload: leased.payload,
				answer: 'thanks',
				delivery_attempts: [
					{ number: 1, at: '2026-03-10T12:00:00.000000', status: 503, error: null, duration_ms: 7 },
					{ number: 2, at: '2026-03-10T13:00:00.000000', status: 200, error: null, duration_ms: 12 },
				],
			});
			expect(await store.reads.getDelivery({ webhook_id: hook + 1, id: leased.delivery })).toBeNull();
		});

		it('are leased evenly across webhooks', async () => {
			const crowded = await hookOf('OPENED', 'https://crowded.example.com/');
			for (let count = 0; count < 5; count++) await opened(await sent());
			const quiet = await hookOf('UNSUBSCRIBED', 'https://quiet.example.com/');
			await store.writes.recordEvents({ events: [eventOf(await sent(), 'UNSUBSCRIBED')] });
			const hooksOf = (leased: LeasedDelivery[]) => leased.map(({ webhook_id }) => webhook_id);
			expect(hooksOf(await lease({ each: 2 }))).toEqual([crowded, crowded, quiet]);
			expect(hooksOf(await lease({ each: 9, shares: [[crowded, 1]] }))).toEqual([crowded]);
		});

		it('stop when their webhook is deleted, whether waiting or in flight', async () => {
			const { hook, leased } = await one();
			await opened(await sent());
			await store.writes.deleteWebhook({ id: hook });
			expect(await lease({ now: noon + day })).toEqual([]);
			expect(await settle(leased, { kind: 'delivered', answer: ok })).toEqual(['lost_lease']);
			expect(await page(hook)).toEqual([]);
		});

		it('stop after the target answers 410, and resume when the webhook is changed', async () => {
			const { hook, leased } = await one();
			await opened(await sent());
			const gone = { ...failing, status: 410 };
			await settle(leased, { kind: 'gone', answer: gone, url: leased.url });
			expect(await lease({ now: noon + day })).toEqual([]);
			expect((await page(hook)).map(({ state }) => state)).toEqual(['failed', 'stopped']);
			const stopped = [{ id: hook, stopped_at: noon, waiting: 1 }];
			expect(await store.reads.stoppedWebhooks()).toEqual(stopped);
			await opened(await sent());
			expect(await page(hook)).toHaveLength(2);
			await store.writes.patchWebhook({ id: hook, patch: {} });
			expect(await store.reads.stoppedWebhooks()).toEqual([]);
			expect(await lease({ now: noon + day })).toHaveLength(1);
		});

		it('go to the new URL if the webhook changed before a 410 from the old URL was recorded', async () => {
			const { hook, leased } = await one();
			const url = 'https://elsewhere.example.com/';
			await store.writes.patchWebhook({ id: hook, patch: { url } });
			const gone = { ...failing, status: 410 };
			expect(await settle(leased, { kind: 'gone', answer: gone, url: leased.url })).toEqual(['moved']);
			expect(await page(hook)).toMatchObject([{ state: 'pending', attempts: 1, last_status: 410 }]);
			expect(await lease()).toMatchObject([{ delivery: leased.delivery, url, attempts: 1 }]);
		});

		const again = (hook: number, more: object = {}) =>
			store.writes.replayDeliveries({
				...{ webhook_id: hook, deliveries: null, failed: false, since: null, after: 0, limit: 100 },
				now: noon + day,
				...more,
			});

		it('are not duplicated by a replay while they wait for a retry', async () => {
			const { hook, leased } = await one();
			await settle(leased, { kind: 'again', answer: failing, due_at: noon + hour });
			expect(await again(hook, { deliveries: [leased.delivery] })).toMatchObject({ count: 1 });
			expect(await lease({ now: noon + hour })).toHaveLength(1);
		});

		it('can be replayed in several calls, and the last call restarts a stopped webhook', async () => {
			const { hook, leased } = await one();
			for (let count = 0; count < 3; count++) await opened(await sent());
			await settle(leased, { kind: 'gone', answer: { ...failing, status: 410 }, url: leased.url });
			const first = await again(hook, { failed: true, limit: 2 });
			if (first.kind !== 'replayed' || first.last === null) throw new Error('one slice only');
			expect(await lease({ now: noon + day })).toEqual([]);
			expect(await again(hook, { failed: true, limit: 9, after: first.last })).toMatchObject({ count: 2 });
			expect(await lease({ now: noon + day })).toHaveLength(4);
		});

		it('cannot be replayed while in flight, or through another webhook', async () => {
			const { hook, leased } = await one();
			const deliveries = [leased.delivery];
			expect(await again(hook, { deliveries })).toEqual({
				kind: 'refused',
				delivery: leased.delivery,
				why: 'sending',
			});
			await settle(leased, { kind: 'delivered', answer: ok });
			expect(await again(hook + 1, { deliveries })).toMatchObject({ kind: 'refused', why: 'unknown' });
			expect(await again(hook, { deliveries })).toMatchObject({ kind: 'replayed', count: 1 });
		});

		it('are deleted when the recipient of their message is erased', async () => {
			const { hook, leased } = await one();
			const fresh = { id: 1, secret: 'c2VjcmV0' };
			await store.writes.erasePerson({ email_key: 'ann@example.org', fresh, now: noon });
			expect(await page(hook)).toEqual([]);
			expect(await settle(leased, { kind: 'delivered', answer: ok })).toEqual(['lost_lease']);
		});
	});
}
