import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	day,
	deliver,
	eventOf,
	figures,
	fixedClock,
	hour,
	lease,
	noon,
	type OpenEmpty,
	send,
	verify,
} from './fixture.js';

export function describeFigures(open: OpenEmpty): void {
	describe('figures', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			return () => store.close();
		});
		const sent = async (more = {}) => {
			await send(store, ['a@example.org'], more);
			return deliver(store, { kind: 'sent', reply: accepted250 }, noon + day);
		};
		const record = (...events: ReturnType<typeof eventOf>[]) => store.writes.recordEvents({ events });

		it('count a message once even if its bounce is recorded before its delivery', async () => {
			await send(store, ['a@example.org'], { tag: 't', campaign: 'c' });
			const [leased] = await lease(store);
			if (leased === undefined) throw new Error('nothing was leased');
			await record(eventOf(leased.message, 'HARDBOUNCED', { at: noon + day }));
			const settled = { ...leased, outcome: { kind: 'sent', reply: accepted250 } } as const;
			await store.queue.settle({ settlements: [{ ...settled, at: noon + 2 * day }] });
			const attempted = async (from: string, to: string) => {
				const range = { from, to, human: false };
				const all = await store.reads.reportFigures({ ...range, campaign: null, tag: null });
				for (const scope of [
					{ campaign: 'c', tag: null },
					{ campaign: null, tag: 't' },
				])
					expect((await store.reads.reportFigures({ ...range, ...scope })).attempted).toBe(all.attempted);
				return all.attempted;
			};
			expect(await attempted('2026-03-10', '2026-03-10')).toBe(0);
			expect(await attempted('2026-03-11', '2026-03-11')).toBe(1);
			expect(await attempted('2026-03-12', '2026-03-12')).toBe(1);
			expect(await attempted('2026-03-11', '2026-03-12')).toBe(1);
			expect((await store.reads.checkCounts({})).figures).toBe(0);
		});

		it('count the clicks on a link and the clicked messages, with and without bots', async () => {
			const first = await sent({ campaign: 'c' });
			const second = await sent({ campaign: 'c' });
			const other = await sent({ campaign: 'other' });
			const click = (message: string, link: number, machine: boolean) =>
				eventOf(message, 'REDIRECTED', { link, machine, at: noon + day });
			await record(click(first, 0, true), click(first, 0, false), click(first, 0, false));
			await record(click(second, 0, true), click(second, 1, false), click(other, 0, false));
			const found = await store.reads.linkFigures({ campaign: 'c' });
			expect(found?.contents).toHaveLength(1);
			expect(
				found?.figures.map(({ link, audience, clicks, messages }) => [link, audience, clicks, messages]),
			).toEqual([
				[0, 'all', 4, 2],
				[0, 'human', 2, 1],
				[1, 'all', 1, 1],
				[1, 'human', 1, 1],
			]);
			expect(await store.reads.linkFigures({ campaign: 'unknown' })).toBeNull();
		});

		it('count by day in the configured time zone, and are recounted after the zone changes', async () => {
			await send(store, ['a@example.org'], { now: noon + 11 * hour });
			expect(await figures(store)).toEqual(['2026-03-10 CREATED 1']);
			await store.writes.putSettings({ values: { time_zone: 'Europe/Oslo' }, now: noon });
			expect(await figures(store)).toEqual(['2026-03-11 CREATED 1']);
			await send(store, ['b@example.org'], { now: noon + 11 * hour });
			expect(await figures(store)).toEqual(['2026-03-11 CREATED 2']);
			await store.writes.putSettings({ values: { time_zone: null }, now: noon });
			expect(await figures(store)).toEqual(['2026-03-10 CREATED 2']);
		});
	});
}
