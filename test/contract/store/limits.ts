import { beforeEach, describe, expect, it } from 'vitest';
import type { Micros } from '../../../src/api/datetime.js';
import type { Leased } from '../../../src/store/queue.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	fixedClock,
	hour,
	lease,
	newUuid,
	noon,
	type OpenEmpty,
	send,
	verify,
} from './fixture.js';

const second: Micros = 1_000_000;
/** A sent message counts for at most 65/64 of the window. */
const slack = 64;

export function describeLimits(open: OpenEmpty): void {
	describe('limits on sending', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			return () => store.close();
		});
		const limit = (values: Record<string, string | null>) => store.writes.putSettings({ values, now: noon });
		const people = (domain: string, count: number) =>
			Array.from({ length: count }, (_, index) => `p${index}@${domain}`);
		const settleSent = (leased: readonly Leased[], at: Micros) =>
			store.queue.settle({
				settlements: leased.map(({ message, fence }) => ({
					message,
					fence,
					at,
					outcome: { kind: 'sent' as const, reply: accepted250 },
				})),
			});
		const domains = (leased: readonly Leased[]) => leased.map(({ to }) => to.split('@')[1]).sort();
		const turn = (now: Micros) => store.reads.nextTurn({ scope: null, now });

		it('allow the given number of messages within the window, and more after it', async () => {
			await limit({ send_limit: '3/1h' });
			await send(store, people('a.test', 5));
			const first = await lease(store);
			expect(first).toHaveLength(3);
			await settleSent(first, noon + 10 * second);
			const back = noon + 10 * second + hour;
			expect(await lease(store, { now: back - 1 })).toEqual([]);
			expect(await lease(store, { now: back + hour / slack })).toHaveLength(2);
		});

		it('count a sent message until one window after its outcome, even if a worker’s clock is behind', async () => {
			await limit({ send_limit: '2/10s' });
			await send(store, people('a.test', 4));
			await settleSent(await lease(store), noon + 3 * second);
			const got: number[] = [];
			for (const at of [1, 12, 14]) got.push((await lease(store, { now: noon + at * second })).length);
			expect(got).toEqual([0, 0, 2]);
		});

		it('count messages that a server deferred, but not messages that a worker gave back', async () => {
			await limit({ send_limit: '2/1h' });
			await send(store, people('a.test', 3));
			const [one, other] = await lease(store);
			if (one === undefined || other === undefined) throw new Error('nothing leased');
			const back = { kind: 'released' as const, why: 'drain' as const };
			const deferred = { kind: 'deferred' as const, reply: busy451, due_at: noon + hour };
			await store.queue.settle({
				settlements: [
					{ ...one, at: noon, outcome: back },
					{ ...other, at: noon, outcome: deferred },
				],
			});
			expect(await lease(store, { now: noon + second })).toHaveLength(1);
		});

		it('can delay messages to one domain only, and add no attempt to a delayed message', async () => {
			await limit({ recipient_domain_limits: 'slow.test=2/1h' });
			const { answer } = await send(store, [...people('slow.test', 5), ...people('fast.test', 3)]);
			expect(domains(await lease(store))).toEqual([
				...Array(3).fill('fast.test'),
				...Array(2).fill('slow.test'),
			]);
			const held = await store.reads.getMessage({ id: answer.messages[4]?.id ?? '' });
			expect(held).toMatchObject({ message: { state: 'queued', attempts: 0 }, attempts: [] });
			expect(await lease(store, { now: noon + second })).toEqual([]);
		});

		it('for the domain * apply separately to each domain that has no other limit', async () => {
			await limit({ recipient_domain_limits: 'big.test=3/1h, *=1/1h' });
			await send(
				store,
				['big.test', 'a.test', 'b.test'].flatMap((domain) => people(domain, 4)),
			);
			expect(domains(await lease(store))).toEqual(['a.test', 'b.test', 'big.test', 'big.test', 'big.test']);
		});

		it('apply together if several are set for one domain', async () => {
			await limit({ recipient_domain_limits: 'slow.test=3/1h, slow.test=1/10s' });
			await send(store, people('slow.test', 5));
			const counts: number[] = [];
			for (const minute of [0, 1, 2, 3, 4]) {
				const now = noon + minute * 60 * second;
				const leased = await lease(store, { now });
				await settleSent(leased, now);
				counts.push(leased.length);
			}
			expect(counts).toEqual([1, 1, 1, 0, 0]);
		});

		it('report when the next message may be sent, or null if they delay no message', async () => {
			expect(await turn(noon)).toBeNull();
			await limit({ recipient_domain_limits: '*=1/1h' });
			expect(await turn(noon)).toBeNull();
			await send(store, people('a.test', 2));
			await settleSent(await lease(store), noon);
			// The reported time may be too early. Then the next report has a later time.
			let look = (await turn(noon + second)) ?? 0;
			for (let tries = 1; (await lease(store, { now: look })).length === 0 && tries < 3; tries += 1)
				look = (await turn(look)) ?? 0;
			expect(look).toBeGreaterThan(noon + hour);
			expect(look).toBeLessThanOrEqual(noon + hour + hour / slack);
			await lease(store, { now: look + second });
			expect(await turn(look + second)).toBeNull();
		});

		it('exclude delayed messages from the number of due messages', async () => {
			await limit({ recipient_domain_limits: '*=10/10s' });
			await send(store, people('a.test', 200));
			await settleSent(await lease(store), noon);
			const due = async (now: Micros) => (await store.reads.queueState({ now })).due;
			expect(await due(noon + second)).toBe(0);
			const later = noon + 11 * second;
			expect(await lease(store, { now: later })).toHaveLength(10);
			expect(await due(later)).toBe(0);
		});

		it('delay no message after their removal: three leases get the 2,699 waiting messages', async () => {
			await limit({ recipient_domain_limits: '*=1/1h' });
			for (const block of ['a', 'b', 'c'])
				await send(
					store,
					Array.from({ length: 900 }, (_, index) => `${block}${index}@a.test`),
				);
			expect(await lease(store)).toHaveLength(1);
			await limit({ recipient_domain_limits: null });
			const counts: number[] = [];
			for (let now = noon + second; counts.at(-1) !== 0; now += second)
				counts.push((await lease(store, { now, max: 1_000 })).length);
			expect(counts).toEqual([1_000, 1_000, 699, 0]);
			expect(await turn(noon + 10 * second)).toBeNull();
		});

		it('ignore a message that is canceled while it waits', async () => {
			await limit({ recipient_domain_limits: '*=1/1h' });
			const { answer } = await send(store, people('a.test', 2));
			await settleSent(await lease(store), noon);
			const id = answer.messages[1]?.id ?? '';
			expect(await store.reads.holdsOfMessage({ id, now: noon + second })).toHaveLength(1);
			await store.writes.changeMessage({ id, action: 'cancel', now: noon + second });
			expect(await store.reads.holdsOfMessage({ id, now: noon + second })).toEqual([]);
			expect(await lease(store, { now: noon + 2 * hour })).toEqual([]);
			expect(await turn(noon + 2 * hour)).toBeNull();
		});

		it('let transactional mail overtake older bulk mail', async () => {
			await limit({ recipient_domain_limits: '*=1/10s' });
			await send(store, people('a.test', 50), { type: 'BULK' });
			await settleSent(await lease(store), noon);
			await lease(store, { now: noon + second });
			await send(store, ['urgent@a.test'], { now: noon + 2 * second });
			const room = noon + 10 * second + second;
			expect((await lease(store, { now: room })).map(({ to }) => to)).toEqual(['urgent@a.test']);
		});

		it.each([
			{ send_limit: '20/10s' },
			{ recipient_domain_limits: '*=20/10s' },
			{ send_limit: '40/10s', recipient_domain_limits: 'a.test=20/10s' },
		])('allow at least 85 % of their rate: %j', async (values) => {
			await limit(values);
			await send(store, people('a.test', 500));
			let count = 0;
			for (let now = noon; now < noon + 120 * second; now += second / 10) {
				const leased = await lease(store, { now });
				await settleSent(leased, now);
				count += leased.length;
			}
			expect(count).toBeGreaterThan(0.85 * 240);
			expect(count).toBeLessThanOrEqual(260);
		});

		it.each<[string, Record<string, string>, number | undefined]>([
			['a rate', {}, 2],
			['send_limit', { send_limit: '2/10s' }, undefined],
			['a limit per sender', { sender_domain_limits: '*=2/10s' }, undefined],
			['a limit per recipient domain', { recipient_domain_limits: 'a.test=2/10s' }, undefined],
		])('count the messages of a killed worker until one window after its lease ends: %s', async (_, values, perSecond) => {
			await limit(values);
			await send(store, people('a.test', 4));
			const pace = perSecond === undefined ? {} : { perSecond };
			const leaseAt = (now: Micros) =>
				store.queue.lease({ owner: 'w', now, until: now + 60 * second, max: 100, scope: null, ...pace });
			expect(await leaseAt(noon)).toHaveLength(2);
			expect(await leaseAt(noon + 59 * second)).toEqual([]);
			const left = noon + 60 * second + (perSecond === undefined ? 10 : 1) * second;
			expect(await leaseAt(left + second)).toHaveLength(2);
		});

		it('no longer delay messages once a window has passed since a killed worker’s leases expired', async () => {
			await limit({ send_limit: '2/10s' });
			const { answer } = await send(store, people('a.test', 4));
			await lease(store);
			const at = (now: Micros) =>
				Promise.all([
					store.reads.queueState({ now }).then(({ held }) => held),
					store.reads.holdsOfMessage({ id: answer.messages[3]?.id ?? '', now }).then((each) => each.length),
					store.reads.nextTurn({ scope: null, now }),
				]);
			expect(await at(noon + second)).toEqual([2, 1, noon + 2 * second]);
			const [held, holds, next] = await at(noon + hour + second);
			// The messages of the killed worker are due again.
			expect([held, holds]).toEqual([4, 1]);
			expect(next).toBeGreaterThanOrEqual(noon + hour + 10 * second);
			expect(await at(noon + hour + 11 * second)).toEqual([0, 0, noon + hour + 11 * second]);
		});

		it.each([
			1, 2, 3,
		])('are never exceeded in any window by concurrent workers (random seed %i)', async (seed) => {
			await limit({ send_limit: '20/10s', recipient_domain_limits: 'a.test=5/7s, *=9/3s' });
			const random = randomFrom(seed);
			await send(store, [...people('a.test', 120), ...people('b.test', 120), ...people('c.test', 60)]);
			const sent: { at: Micros; domain: string }[] = [];
			let hands: Leased[] = [];
			for (let now = noon; now < noon + 120 * second; now += Math.ceil(random() * 2 * second)) {
				const max = 1 + Math.floor(random() * 12);
				hands.push(
					...(await store.queue.lease({ owner: newUuid(), now, until: now + 4 * second, max, scope: null })),
				);
				const rest: Leased[] = [];
				for (const message of hands) {
					const fate = random();
					// Below 0.4 the message is in flight. Below 0.6 it was sent, but its worker died before it
					// recorded the outcome.
					if (fate < 0.4) rest.push(message);
					else sent.push({ at: now, domain: message.to.split('@')[1] ?? '' });
					if (fate >= 0.6) await settleSent([message], now);
				}
				// The lease of some messages expires, and another worker gets them.
				hands = rest.filter(() => random() > 0.2);
			}
			expect(sent.length).toBeGreaterThan(30);
			expect(mostIn(sent, 10 * second)).toBeLessThanOrEqual(20);
			for (const [domain, count, window] of [
				['a.test', 5, 7],
				['b.test', 9, 3],
				['c.test', 9, 3],
			] as const) {
				const ofDomain = sent.filter((each) => each.domain === domain);
				expect(mostIn(ofDomain, window * second)).toBeLessThanOrEqual(count);
			}
		});

		describe('that delay messages', () => {
			const holding = async (now: Micros) => (await store.reads.queueState({ now })).limits;
			const waits = async (now: Micros) =>
				(await store.reads.limitWaits({ now })).map(({ limit, wait }) => [limit, Math.round(wait / second)]);
			const ids = async (domain: string, count: number) =>
				(await send(store, people(domain, count))).answer.messages.map(({ id }) => id);

			it('do not include a limit that still allows messages', async () => {
				const [id = ''] = await ids('a.test', 1);
				expect(await holding(noon)).toEqual([]);
				expect(await waits(noon)).toEqual([]);
				await limit({ recipient_domain_limits: 'a.test=1/1h', send_limit: '9/1h' });
				expect(await holding(noon)).toEqual([]);
				expect(await waits(noon)).toEqual([
					['9/h', 0],
					['a.test=1/h', 0],
				]);
				expect(await store.reads.holdsOfMessage({ id, now: noon })).toEqual([]);
			});

			it('are listed with the number of waiting messages, and the times when the first and last may be sent', async () => {
				await limit({ recipient_domain_limits: 'a.test=2/1h, *=1/1h' });
				await send(store, [...people('a.test', 5), ...people('b.test', 2), ...people('c.test', 1)]);
				await settleSent(await lease(store), noon);
				await lease(store, { now: noon + second });
				const state = await holding(noon + second);
				expect(state).toEqual([
					{
						setting: 'recipient_domain_limits',
						limit: 'a.test=2/h',
						domain: 'a.test',
						messages: 3,
						next_at: expect.any(Number),
						last_at: expect.any(Number),
					},
					{
						setting: 'recipient_domain_limits',
						limit: '*=1/h',
						domain: 'b.test',
						messages: 1,
						next_at: expect.any(Number),
						last_at: expect.any(Number),
					},
				]);
				const [{ next_at, last_at } = { next_at: 0, last_at: 0 }] = state;
				expect(next_at).toBeGreaterThanOrEqual(noon + hour - second);
				expect(last_at - next_at).toBe(hour);
				expect(await waits(noon + second)).toEqual([
					['a.test=2/h', Math.round((last_at - noon - second) / second)],
					['*=1/h', expect.any(Number)],
				]);
			});

			it('count leased messages against the limit, but not among the waiting messages', async () => {
				await limit({ recipient_domain_limits: 'a.test=2/1h' });
				await ids('a.test', 3);
				await lease(store);
				expect(await holding(noon + second)).toMatchObject([{ messages: 1, next_at: noon + second + hour }]);
			});

			it('are listed for one message, with the time when it may be sent', async () => {
				await limit({ recipient_domain_limits: 'a.test=1/1h, *=9/1s' });
				const [first = '', second_ = '', third = ''] = await ids('a.test', 3);
				const [other = ''] = await ids('b.test', 1);
				await settleSent(await lease(store), noon);
				const held = await store.reads.holdsOfMessage({ id: second_, now: noon + second });
				expect(held).toEqual([
					{
						setting: 'recipient_domain_limits',
						limit: 'a.test=1/h',
						domain: 'a.test',
						until_at: expect.any(Number),
					},
				]);
				const [last] = await store.reads.holdsOfMessage({ id: third, now: noon + second });
				expect((last?.until_at ?? 0) - (held[0]?.until_at ?? 0)).toBe(hour);
				expect(await store.reads.holdsOfMessage({ id: first, now: noon + second })).toEqual([]);
				expect(await store.reads.holdsOfMessage({ id: other, now: noon + second })).toEqual([]);
			});

			it('are no longer reported after they are removed', async () => {
				await limit({ recipient_domain_limits: '*=1/1h' });
				const [, waiting = ''] = await ids('a.test', 2);
				await settleSent(await lease(store), noon);
				await limit({ recipient_domain_limits: null });
				expect(await holding(noon + second)).toEqual([]);
				expect(await store.reads.holdsOfMessage({ id: waiting, now: noon + second })).toEqual([]);
				expect(await waits(noon + second)).toEqual([]);
			});
		});
	});

	describe('DKIM keys', () => {
		it('are stored once for each domain and selector', async () => {
			const store = await open(fixedClock);
			const key = { domain: 'example.org', selector: 's1', type: 'rsa' as const, secret: 'c2VjcmV0' };
			expect(await store.writes.addDkimKey({ ...key, now: noon })).toBe(true);
			expect(await store.writes.addDkimKey({ ...key, secret: 'other', now: noon })).toBe(false);
			expect(await store.writes.addDkimKey({ ...key, selector: 's2', now: noon + 1 })).toBe(true);
			expect(await store.reads.listDkimKeys()).toEqual([
				{ ...key, created_at: noon },
				{ ...key, selector: 's2', created_at: noon + 1 },
			]);
			expect(await store.writes.removeDkimKey({ domain: 'example.org', selector: 's1' })).toBe(true);
			expect(await store.writes.removeDkimKey({ domain: 'example.org', selector: 's1' })).toBe(false);
			expect(await store.reads.listDkimKeys()).toMatchObject([{ selector: 's2' }]);
			await store.close();
		});
	});
}

/** Returns the most messages sent in any window. */
function mostIn(sent: readonly { at: Micros }[], window: Micros): number {
	const times = sent.map(({ at }) => at).sort((one, other) => one - other);
	return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + window).length));
}

/** A linear congruential generator, so that each run has the same numbers. */
function randomFrom(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
		return state / 2 ** 31;
	};
}
