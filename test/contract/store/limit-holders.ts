import { beforeEach, describe, expect, it } from 'vitest';
import type { Micros } from '../../../src/api/datetime.js';
import type { Leased } from '../../../src/store/queue.js';
import type { Store } from '../../../src/store/store.js';
import { accepted250, fixedClock, hour, lease, noon, type OpenEmpty, send, verify } from './fixture.js';

const second: Micros = 1_000_000;

export function describeLimitHolders(open: OpenEmpty): void {
	describe('what limits hold back', () => {
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
		const holding = async (now: Micros) => (await store.reads.queueState({ now })).limits;
		const heldOfDue = async (now: Micros) => {
			const { due, held } = await store.reads.queueState({ now });
			return [held, due];
		};
		const waits = async (now: Micros) =>
			(await store.reads.limitWaits({ now })).map(({ limit, wait }) => [limit, Math.round(wait / second)]);
		const ids = async (domain: string, count: number) =>
			(await send(store, people(domain, count))).answer.messages.map(({ id }) => id);

		it('is nothing where no limit is set, or none is used up', async () => {
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

		it('is told of what is due where the limit is on everything', async () => {
			await limit({ send_limit: '2/1h' });
			await ids('a.test', 4);
			await settleSent(await lease(store), noon);
			expect(await heldOfDue(noon + second)).toEqual([2, 2]);
			await limit({ send_limit: null });
			expect(await heldOfDue(noon + second)).toEqual([0, 2]);
		});

		it('is counted by limit, with the turns of the first and of the last', async () => {
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

		it('counts what is in a worker’s hands against the limit, and not as waiting', async () => {
			await limit({ recipient_domain_limits: 'a.test=2/1h' });
			await ids('a.test', 3);
			await lease(store);
			expect(await holding(noon + second)).toMatchObject([{ messages: 1, next_at: noon + second + hour }]);
		});

		it('is all that is due where the limit is on everything', async () => {
			await limit({ send_limit: '2/1h' });
			await send(store, [...people('a.test', 4), ...people('b.test', 3)]);
			expect(await holding(noon)).toEqual([]);
			await settleSent(await lease(store), noon);
			const [found, ...others] = await holding(noon + second);
			expect(others).toEqual([]);
			expect(found).toMatchObject({ setting: 'send_limit', limit: '2/h', domain: null, messages: 5 });
			expect(await waits(noon + second)).toEqual([['2/h', expect.any(Number)]]);
			expect((await waits(noon + second))[0]?.[1]).toBeGreaterThan(3_500);
		});

		it('is told of one message: which limit, and until when', async () => {
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

		it('is told of one message that waits for the limit on everything', async () => {
			await limit({ send_limit: '1/1h' });
			const [, waiting = ''] = await ids('a.test', 2);
			await settleSent(await lease(store), noon);
			expect(await store.reads.holdsOfMessage({ id: waiting, now: noon + second })).toMatchObject([
				{ setting: 'send_limit', limit: '1/h', domain: null },
			]);
		});

		it('is nothing once the limit is lifted', async () => {
			await limit({ recipient_domain_limits: '*=1/1h' });
			const [, waiting = ''] = await ids('a.test', 2);
			await settleSent(await lease(store), noon);
			await limit({ recipient_domain_limits: null });
			expect(await holding(noon + second)).toEqual([]);
			expect(await store.reads.holdsOfMessage({ id: waiting, now: noon + second })).toEqual([]);
			expect(await waits(noon + second)).toEqual([]);
		});
	});
}
