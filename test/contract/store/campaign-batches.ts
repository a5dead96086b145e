import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
	campaignOf,
	figures,
	fixedClock,
	hour,
	lease,
	messageIds,
	newField,
	newList,
	newSubscriber,
	noon,
	type OpenEmpty,
	put,
	verify,
} from './fixture.js';

export function describeCampaignBatches(open: OpenEmpty): void {
	describe('batches of recipients', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			return () => store.close();
		});
		const opened = async (more: Parameters<typeof campaignOf>[1] = {}, strict_vars = false) => {
			const command = campaignOf('job', more);
			await store.writes.openCampaign({ ...command, strict_vars });
			return command.id;
		};
		const ackOf = async (...batch: Parameters<typeof put> extends [Store, ...infer Rest] ? Rest : never) => {
			const outcome = await put(store, ...batch);
			if (outcome.kind !== 'acknowledged') throw new Error(JSON.stringify(outcome));
			return outcome.ack;
		};
		const countsOf = async (id: string) => (await store.reads.campaignStatus({ id, now: 0 }))?.counts;
		const variables = async (campaign: string) => {
			const status = await store.reads.campaignStatus({ id: campaign, now: 0 });
			const expect_count = status?.counts.staged ?? 0;
			await store.writes.releaseCampaign({ campaign, expect_count, now: noon });
			return (await lease(store)).map((leased) => [leased.to, leased.variables]);
		};

		it('number their rows apart from those of lists, and stage nobody twice beside one', async () => {
			const list_id = await newList(store);
			for (const who of ['a', 'b']) await newSubscriber(store, list_id, `${who}@example.org`);
			const id = await opened();
			await put(store, id, 0, ['b@example.org']);
			expect(await store.writes.addListToCampaign({ campaign: id, list_id, now: noon })).toMatchObject({
				position: 2,
				counts: { staged: 1, suppressed: 0, rejected: 0, left_out: 1 },
				rejects: [],
			});
			expect(await ackOf(id, 1, ['a@example.org', 'c@example.org'])).toMatchObject({
				position: 3,
				counts: { staged: 1, suppressed: 0, rejected: 1 },
				rejects: [{ row: 1, code: 'duplicate' }],
			});
			expect(await countsOf(id)).toEqual({ staged: 3, suppressed: 0, rejected: 1, left_out: 1 });
		});

		it('look for the subscriber in the list of the campaign, and leave out whom it has inactive', async () => {
			await newField(store, 'city');
			const [news, other] = [await newList(store), await newList(store, 'Other')];
			await newSubscriber(store, news, 'a@example.org', { meta: { city: 'Oslo' } });
			await newSubscriber(store, other, 'a@example.org', { meta: { city: 'Rome' } });
			await newSubscriber(store, other, 'off@example.org', { is_active: false });
			const id = await opened({ variables: ['city', 'email_reason'], list_id: other });
			const ack = await ackOf(id, 0, ['a@example.org', 'off@example.org', 'new@example.org']);
			expect(ack.counts).toEqual({ staged: 2, suppressed: 1, rejected: 0 });
			expect(await variables(id)).toEqual([
				['a@example.org', { city: 'Rome', email_reason: 'You read Other' }],
				['new@example.org', { email_reason: 'You read Other' }],
			]);
		});

		it('leave out whom the only list with the address has inactive: at the lease it would be canceled', async () => {
			const list_id = await newList(store);
			await newSubscriber(store, list_id, 'off@example.org', { is_active: false });
			const id = await opened();
			expect((await ackOf(id, 0, ['off@example.org'])).counts).toEqual({
				staged: 0,
				suppressed: 1,
				rejected: 0,
			});
			const personal = { ...campaignOf('personal'), spec: campaignOf('x').spec };
			const submission = { ...personal.submission, type: 'TRANSACTIONAL' } as const;
			await store.writes.openCampaign({ ...personal, submission });
			expect((await ackOf(personal.id, 0, ['off@example.org'])).counts).toMatchObject({ staged: 1 });
		});

		it('go with a campaign that is canceled, and count on the days of another time zone', async () => {
			const id = await opened();
			await put(store, id, 0, ['a@example.org']);
			const other = campaignOf('other');
			await store.writes.openCampaign(other);
			await put(store, other.id, 0, ['b@example.org', 'c@example.org']);
			await store.writes.releaseCampaign({ campaign: other.id, expect_count: 2, now: noon });
			await store.writes.putSettings({ values: { time_zone: 'Pacific/Kiritimati' }, now: noon });
			expect(await figures(store)).toEqual(['2026-03-11 CREATED 2']);
			await store.writes.cancelCampaign({ campaign: id, now: noon + hour });
			expect(await messageIds(store)).toHaveLength(2);
		});

		it('refuse a campaign that is meant for a list that is not there', async () => {
			const command = campaignOf('job', { list_id: 99 });
			expect(await store.writes.openCampaign(command)).toMatchObject({
				kind: 'refused',
				errors: { list_id: [{ code: 'does_not_exist' }] },
			});
		});
	});
}
