import { beforeEach, describe, expect, it } from 'vitest';
import type { Message } from '../../../src/api/records.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	campaignOf,
	day,
	fixedClock,
	lease,
	newList,
	newSubscriber,
	noon,
	type OpenEmpty,
	put,
	releasedCampaign,
	send,
	unknown550,
	verify,
} from './fixture.js';

type Filter = Parameters<Store['reads']['pageMessages']>[0]['filter'];

/** Whether a message matches the filter, computed without an index. */
function fulfils(filter: Filter, message: Message): boolean {
	const { status, to_key, campaign_unique_id: campaign, tag, since_at } = filter;
	return (
		(status === undefined || message.state === status) &&
		(to_key === undefined || message.to === to_key) &&
		(campaign === undefined || message.campaign_unique_id === campaign) &&
		(tag === undefined || message.tag === tag) &&
		(since_at === undefined || Date.parse(`${message.date_created}Z`) * 1000 >= since_at)
	);
}

/** Returns filters for every combination of conditions and their values. */
function combined(values: Readonly<Record<string, readonly (string | number)[]>>): Filter[] {
	let filters: Record<string, string | number>[] = [{}];
	for (const [name, ones] of Object.entries(values))
		filters = filters.flatMap((filter) => [filter, ...ones.map((one) => ({ ...filter, [name]: one }))]);
	return filters as Filter[];
}

export function describeMessagePages(open: OpenEmpty): void {
	describe('pages of messages', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			return () => store.close();
		});

		/** Creates messages in every state, of campaigns and of calls; returns the campaigns' ids. */
		async function mixed(): Promise<string[]> {
			const list = await newList(store);
			for (const name of ['a', 'b', 'c']) await newSubscriber(store, list, `${name}@example.org`);
			const early = await releasedCampaign(store, list, 'early');
			const outcomes = [
				{ kind: 'sent', reply: accepted250 },
				{ kind: 'bounced', reply: unknown550, suppress: false },
				{ kind: 'failed', reply: unknown550 },
				{ kind: 'uncertain', reply: busy451 },
				{ kind: 'deferred', reply: busy451, due_at: noon + 10 * day },
				{ kind: 'sent', reply: accepted250 },
			] as const;
			for (const outcome of outcomes) {
				const [one] = await lease(store, { max: 1 });
				if (one === undefined) await send(store, ['d@example.org'], { tag: 'receipt' });
				const [message = one] = one === undefined ? await lease(store, { max: 1 }) : [one];
				if (message === undefined) throw new Error('nothing to deliver');
				const { message: id, fence } = message;
				await store.queue.settle({ settlements: [{ message: id, fence, at: noon, outcome }] });
			}
			// This campaign is staged before the last calls and released after them.
			const late = campaignOf('late', { tag: 'receipt' });
			await store.writes.openCampaign(late);
			await put(store, late.id, 0, ['a@example.org', 'e@example.org']);
			await send(store, ['a@example.org', 'f@example.org'], { now: noon + day, tag: 'receipt' });
			await store.writes.releaseCampaign({ campaign: late.id, expect_count: 2, now: noon + 3 * day });
			const staged = campaignOf('staged', { tag: 'news' });
			await store.writes.openCampaign(staged);
			await put(store, staged.id, 0, ['g@example.org']);
			const dropped = await releasedCampaign(store, list, 'dropped');
			await lease(store, { max: 1, scope: { campaign: dropped } });
			await store.writes.cancelCampaign({ campaign: dropped, now: noon });
			return [early, late.id, staged.id, dropped];
		}

		it('contain and count exactly the messages that the filter selects', async () => {
			const campaigns = await mixed();
			const all = (await store.reads.pageMessages({ page: 1, page_size: 100, filter: {} })).results;
			const states = new Set(all.map(({ state }) => state));
			expect([...states].sort()).toEqual(
				[
					'bounced',
					'canceled',
					'deferred',
					'failed',
					'leased',
					'queued',
					'sent',
					'staged',
					'uncertain',
				].sort(),
			);
			const filters = combined({
				status: [...states],
				to_key: ['a@example.org', 'nobody@example.org'],
				campaign_unique_id: campaigns,
				tag: ['receipt', 'none'],
				since_at: [noon + 1, noon + 2 * day],
			});
			for (const filter of filters) {
				const wanted = all.filter((one) => fulfils(filter, one)).map(({ id }) => id);
				const { count, results } = await store.reads.pageMessages({ page: 1, page_size: 100, filter });
				const found = results.map(({ id }) => id).sort();
				expect({ filter, count, found }).toEqual({ filter, count: wanted.length, found: [...wanted].sort() });
			}
		});
	});
}
