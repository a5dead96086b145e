import { beforeEach, describe, expect, it } from 'vitest';
import type { Uuid } from '../../../src/api/records.js';
import type { Submission } from '../../../src/store/campaigns.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	campaignOf,
	deliver,
	fixedClock,
	hour,
	lease,
	newList,
	newUuid,
	noon,
	type OpenEmpty,
	plainContent,
	send,
	stateOf,
	verify,
} from './fixture.js';

const moment = '2026-03-10T12:00:00.000000';

export function describeCalls(open: OpenEmpty): void {
	describe('a campaign of send calls', () => {
		let store: Store;
		let list_id: number;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			list_id = await newList(store);
			return () => store.close();
		});
		const suppress = (address: string) =>
			store.writes.putSuppressions({
				rows: [
					{
						...{ email_key: address, reason: 'UNSUBSCRIBED', list_id: null, source: 'API' },
						...{ created_at: noon, expires_at: null },
					},
				],
				now: noon,
			});
		const sendBulk = async (to: readonly string[], more: Partial<Submission> = {}) => {
			const { campaign } = await send(store, to, { type: 'BULK', ...more });
			if (campaign === null) throw new Error('a bulk call without a campaign');
			return campaign;
		};
		const pageOf = (id: string, more: object = {}) =>
			store.reads.pageCampaigns({ id, page: 1, page_size: 9, now: noon, ...more });
		const statusOf = (id: string, more: object = {}) =>
			store.reads.campaignStatus({ id, now: noon, ...more });
		const resultsOf = (id: string, more: object = {}) =>
			store.reads.sliceCampaignResults({ id, after: 0, limit: 100, only: null, ...more });
		const leftOutOf = (id: string, more: object = {}) =>
			store.reads.sliceLeftOut({ id, after: 0, limit: 100, ...more });

		it('contains all calls that name its UUID, and shows the type, subject and list of the newest call', async () => {
			const campaign = newUuid();
			await send(store, ['a@example.org'], { campaign, type: 'TRANSACTIONAL' });
			const content = { ...plainContent, subject: 'Second' };
			const more = { campaign, content, content_sha256: 'hash of the second', list_id, now: noon + hour };
			await sendBulk(['a@example.org', 'b@example.org'], more);
			await sendBulk(['z@example.org']);
			expect((await pageOf(campaign)).results).toMatchObject([
				{
					...{ type: 'BULK', subject: 'Second', list_id, counts: { staged: 3 } },
					...{ date_created: moment, date_released: moment },
				},
			]);
		});

		it('keeps its calls after a client opens a named campaign with the same UUID', async () => {
			const id = await sendBulk(['a@example.org']);
			await store.writes.openCampaign({ ...campaignOf('named'), id });
			expect((await pageOf(id)).results).toMatchObject([{ key: 'named', state: 'staged' }]);
			const counts = { messages: {}, joined: { queued: 1 } };
			expect(await statusOf(id)).toEqual(expect.objectContaining({ key: 'named', ...counts }));
		});

		it('cannot be opened by a client if another client made some of its calls', async () => {
			const [own, both] = [newUuid(), newUuid()];
			await sendBulk(['a@example.org'], { campaign: own, owner: 'news' });
			for (const owner of ['shop', 'news'])
				await sendBulk([`${owner}@example.org`], { campaign: both, owner });
			const open = (id: Uuid) =>
				store.writes.openCampaign({ ...campaignOf(`of ${id}`), id, owner: 'news', only_of: 'news' });
			expect(await open(both)).toMatchObject({
				kind: 'refused',
				errors: { campaign_unique_id: [{ code: 'unique' }] },
			});
			expect(await statusOf(both, { only_of: 'shop' })).toMatchObject({ messages: { queued: 1 } });
			expect(await open(own)).toMatchObject({ kind: 'opened' });
		});

		it('keeps its leased messages when canceled, and is finished when they have an outcome', async () => {
			const campaign = newUuid();
			await sendBulk(['a@example.org', 'b@example.org', 'c@example.org'], { campaign });
			await sendBulk(['d@example.org', 'e@example.org'], { campaign });
			const other = await sendBulk(['z@example.org']);
			await deliver(store, { kind: 'sent', reply: accepted250 });
			await deliver(store, { kind: 'deferred', reply: busy451, due_at: noon + hour });
			const [leased] = await lease(store, { max: 1 });
			expect(await store.writes.cancelCampaign({ campaign, now: noon })).toEqual({ kind: 'canceled' });
			expect(await statusOf(campaign)).toMatchObject({
				...{ state: 'released', is_finished: false, messages: { canceled: 3, leased: 1, sent: 1 } },
			});
			expect((await lease(store)).map(({ to }) => to)).toEqual(['z@example.org']);
			const settlement = { message: leased?.message ?? '', fence: leased?.fence ?? 0, at: noon };
			expect(
				await store.queue.settle({
					settlements: [{ ...settlement, outcome: { kind: 'sent', reply: accepted250 } }],
				}),
			).toEqual(['recorded']);
			expect(await statusOf(campaign)).toMatchObject({
				...{ is_finished: true, messages: { canceled: 3, sent: 2 } },
			});
			expect(await store.writes.cancelCampaign({ campaign, now: noon })).toEqual({ kind: 'canceled' });
			expect(await statusOf(other)).toMatchObject({ messages: { leased: 1 } });
		});

		it('when canceled, cancels a message whose worker died', async () => {
			const campaign = await sendBulk(['a@example.org']);
			const [leased] = await lease(store);
			await store.writes.cancelCampaign({ campaign, now: noon + 2 * hour });
			expect(await stateOf(store, leased?.message ?? '')).toBe('canceled');
			expect(await lease(store, { now: noon + 2 * hour })).toEqual([]);
		});

		it('cannot be canceled with forget: true, because its messages count as released', async () => {
			const campaign = await sendBulk(['a@example.org']);
			expect(await store.writes.cancelCampaign({ campaign, forget: true, now: noon })).toEqual({
				kind: 'released',
			});
			expect(await statusOf(campaign)).toMatchObject({ messages: { queued: 1 } });
		});

		it('shows a client only its own calls', async () => {
			const campaign = newUuid();
			await suppress('gone@example.org');
			await sendBulk(['a@example.org', 'gone@example.org'], { campaign, owner: 'shop' });
			await sendBulk(['b@example.org', 'c@example.org'], { campaign, owner: 'news' });
			const [shop, news, desk] = ['shop', 'news', 'desk'].map((only_of) => ({ only_of }));
			expect(await statusOf(campaign, shop)).toMatchObject({ counts: { staged: 1, suppressed: 1 } });
			expect(await statusOf(campaign, news)).toMatchObject({ counts: { staged: 2, suppressed: 0 } });
			expect(await statusOf(campaign)).toMatchObject({ counts: { staged: 3, suppressed: 1 } });
			expect((await pageOf(campaign, news)).results).toMatchObject([{ counts: { staged: 2 } }]);
			expect((await resultsOf(campaign, news))?.results.map(({ to }) => to)).toEqual([
				...['b@example.org', 'c@example.org'],
			]);
			expect(await leftOutOf(campaign, news)).toEqual({ results: [], next: null });
			expect((await leftOutOf(campaign, shop))?.results).toHaveLength(1);
			expect(await statusOf(campaign, desk)).toBeNull();
			expect(await pageOf(campaign, desk)).toEqual({ count: 0, results: [] });
			expect(await resultsOf(campaign, desk)).toBeNull();
			expect(await leftOutOf(campaign, desk)).toBeNull();
			const cancel = { campaign, now: noon };
			expect(await store.writes.cancelCampaign({ ...cancel, ...desk })).toEqual({ kind: 'not_found' });
			expect(await store.writes.cancelCampaign({ ...cancel, ...news })).toEqual({ kind: 'canceled' });
			expect(await statusOf(campaign)).toMatchObject({ messages: { canceled: 2, queued: 1 } });
		});
	});
}
