import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	campaignOf,
	deliver,
	eventOf,
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
	recipientOf,
	send,
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

		it('stage recipients one after the other, and lease none of them before the release', async () => {
			const id = await opened();
			expect(await put(store, id, 0, ['a@example.org', 'b@example.org'])).toEqual({
				kind: 'acknowledged',
				ack: { position: 2, counts: { staged: 2, suppressed: 0, rejected: 0 }, rejects: [] },
			});
			expect(await ackOf(id, 2, ['c@example.org'])).toMatchObject({ position: 3, counts: { staged: 1 } });
			expect(await lease(store)).toEqual([]);
			expect(await figures(store)).toEqual([]);
			expect(await countsOf(id)).toEqual({ staged: 3, suppressed: 0, rejected: 0 });
			await store.writes.releaseCampaign({ campaign: id, expect_count: 3, now: noon });
			expect((await lease(store)).map(({ to }) => to)).toEqual([
				'a@example.org',
				'b@example.org',
				'c@example.org',
			]);
			expect(await figures(store, { campaign: id })).toEqual(['2026-03-10 CREATED 3']);
		});

		it('give the same answer to the same first row, whatever was put since, and count it once', async () => {
			const id = await opened();
			const rows = ['a@example.org', 'A@example.org'];
			const ack = await ackOf(id, 0, rows);
			expect(ack).toEqual({
				position: 2,
				counts: { staged: 1, suppressed: 0, rejected: 1 },
				rejects: [{ row: 1, code: 'duplicate', error: 'A@example.org is in this campaign already.' }],
			});
			await ackOf(id, 2, ['b@example.org']);
			expect(await ackOf(id, 0, rows)).toEqual(ack);
			expect(await countsOf(id)).toEqual({ staged: 2, suppressed: 0, rejected: 1 });
			expect(await messageIds(store)).toHaveLength(2);
		});

		it('leave no gap, and never begin in the middle of one that was put', async () => {
			const id = await opened();
			expect(await put(store, id, 1, ['a@example.org'])).toEqual({ kind: 'gap', position: 0 });
			await put(store, id, 0, ['a@example.org', 'b@example.org']);
			expect(await put(store, id, 1, ['b@example.org'])).toEqual({ kind: 'gap', position: 2 });
			expect(await put(store, id, 3, ['d@example.org'])).toEqual({ kind: 'gap', position: 2 });
			expect(await countsOf(id)).toEqual({ staged: 2, suppressed: 0, rejected: 0 });
		});

		it('may be empty, which moves nothing', async () => {
			const id = await opened();
			const nothing = { position: 0, counts: { staged: 0, suppressed: 0, rejected: 0 }, rejects: [] };
			expect(await ackOf(id, 0, [])).toEqual(nothing);
			expect(await ackOf(id, 0, ['a@example.org'])).toMatchObject({ position: 1, counts: { staged: 1 } });
		});

		it('are taken by no campaign that is released, canceled or unknown, not even once more', async () => {
			const released = await opened();
			await put(store, released, 0, ['a@example.org']);
			await store.writes.releaseCampaign({ campaign: released, expect_count: 1, now: noon });
			for (const first of [0, 1]) {
				expect(await put(store, released, first, ['a@example.org'])).toEqual({
					kind: 'closed',
					state: 'released',
				});
			}
			const canceled = campaignOf('other');
			await store.writes.openCampaign(canceled);
			await put(store, canceled.id, 0, ['a@example.org']);
			await store.writes.cancelCampaign({ campaign: canceled.id, now: noon });
			expect(await put(store, canceled.id, 0, ['a@example.org'])).toEqual({
				kind: 'closed',
				state: 'canceled',
			});
			expect(await put(store, 'nobody', 0, [])).toEqual({ kind: 'not_found' });
			expect(await messageIds(store)).toHaveLength(1);
			expect(await figures(store)).toEqual(['2026-03-10 CREATED 1']);
		});

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

		it('keep what was found at fault before, row by row', async () => {
			const id = await opened();
			const bad = { kind: 'rejected', code: 'invalid', error: 'to: Enter a valid email address.' } as const;
			expect(await ackOf(id, 0, ['a@example.org', bad])).toEqual({
				position: 2,
				counts: { staged: 1, suppressed: 0, rejected: 1 },
				rejects: [{ row: 1, code: 'invalid', error: 'to: Enter a valid email address.' }],
			});
		});

		it('put a context over that of all, and that over the meta of the one subscriber it is', async () => {
			await newField(store, 'city');
			const list_id = await newList(store);
			await newSubscriber(store, list_id, 'a@example.org', { name: 'Ann', meta: { city: 'Oslo' } });
			const id = await opened({
				variables: ['name', 'city', 'offer', '__proto__', 'email_reason'],
				context: { offer: 'all', unused: 'x' },
			});
			const own = Object.fromEntries([
				['offer', 'mine'],
				['__proto__', 'p'],
				['elsewhere', 'not kept'],
			]);
			await put(store, id, 0, [
				recipientOf('a@example.org'),
				recipientOf('b@example.org', own),
				recipientOf('c@example.org', { city: '', name: 'Cy', offer: '' }),
			]);
			expect(await variables(id)).toEqual([
				['a@example.org', { name: 'Ann', city: 'Oslo', offer: 'all', email_reason: 'You read News' }],
				[
					'b@example.org',
					Object.fromEntries([
						['name', ''],
						['offer', 'mine'],
						['__proto__', 'p'],
						['email_reason', ''],
					]),
				],
				['c@example.org', { name: 'Cy', city: '', offer: '', email_reason: '' }],
			]);
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

		it('suppress whom every campaign leaves out, and reject who lacks a variable when it is strict', async () => {
			await send(store, ['gone@example.org']);
			const message = await deliver(store, { kind: 'sent', reply: accepted250 });
			await store.writes.recordEvents({ events: [eventOf(message, 'UNSUBSCRIBED')] });
			const id = await opened({ variables: ['town', 'plan', 'view_url'], context: { plan: 'free' } }, true);
			const rows = [
				recipientOf('gone@example.org'),
				recipientOf('with@example.org', { town: '' }),
				recipientOf('without@example.org', { plan: 'paid' }),
			];
			expect(await ackOf(id, 0, rows)).toEqual({
				position: 3,
				counts: { staged: 1, suppressed: 1, rejected: 1 },
				rejects: [{ row: 2, code: 'missing_variable', error: 'without@example.org: no value for #town#.' }],
			});
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
