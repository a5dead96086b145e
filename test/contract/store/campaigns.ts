import { beforeEach, describe, expect, it } from 'vitest';
import { leaseOwner } from '../../../src/store/core/processes.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	campaignOf,
	day,
	deliver,
	fixedClock,
	hour,
	lease,
	newField,
	newList,
	newSubscriber,
	newUuid,
	noon,
	type OpenEmpty,
	put,
	releasedCampaign,
	send,
	unknown550,
	verify,
} from './fixture.js';

export function describeCampaigns(open: OpenEmpty): void {
	describe('campaigns', () => {
		let store: Store;
		let list_id: number;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			list_id = await newList(store);
			for (const who of ['a', 'b', 'c']) await newSubscriber(store, list_id, `${who}@example.org`);
			return () => store.close();
		});
		const staged = async (key: string, more = {}) => {
			const command = campaignOf(key, more);
			await store.writes.openCampaign(command);
			await store.writes.addListToCampaign({ campaign: command.id, list_id, now: noon });
			return command.id;
		};
		const release = (campaign: string, expect_count: number) =>
			store.writes.releaseCampaign({ campaign, expect_count, now: noon + hour });

		it('give up their names if canceled before their release, but keep them if canceled later', async () => {
			const first = await staged('job');
			await store.writes.cancelCampaign({ campaign: first, now: noon });
			const plain = campaignOf('job');
			const other = { ...plain, spec: { ...plain.spec, subject: 'Other' } };
			expect(await store.writes.openCampaign(other)).toEqual({
				kind: 'opened',
				session: { id: other.id, key: 'job', position: 0 },
			});
			expect(await store.reads.campaignStatus({ id: first, now: 0 })).toMatchObject({ state: 'canceled' });
			await store.writes.addListToCampaign({ campaign: other.id, list_id, now: noon });
			await release(other.id, 3);
			await store.writes.cancelCampaign({ campaign: other.id, now: noon + hour });
			expect(await store.writes.openCampaign(campaignOf('job'))).toEqual({ kind: 'conflict' });
		});

		it('reject an unverified sender, and the UUID of another campaign', async () => {
			const eve = campaignOf('eve', { from_key: 'eve@example.org' });
			expect(await store.writes.openCampaign(eve)).toMatchObject({ kind: 'refused', errors: { from: [{}] } });
			const id = await staged('job');
			const taken = { ...campaignOf('other'), id };
			expect(await store.writes.openCampaign(taken)).toMatchObject({
				kind: 'refused',
				errors: { campaign_unique_id: [{ code: 'unique' }] },
			});
		});

		it('stop sending when a client cancels them, but record the outcomes of leased messages', async () => {
			const campaign = await releasedCampaign(store, list_id, 'job');
			await deliver(store, { kind: 'sent', reply: accepted250 });
			const [leased] = await lease(store, { max: 1 });
			await store.writes.cancelCampaign({ campaign, now: noon });
			expect(await store.reads.countMessages({ scope: { campaign } })).toEqual({
				sent: 1,
				leased: 1,
				canceled: 1,
			});
			expect(await lease(store)).toEqual([]);
			const outcome = { kind: 'sent', reply: accepted250 } as const;
			const settlement = { message: leased?.message ?? '', fence: 1, at: noon, outcome };
			expect(await store.queue.settle({ settlements: [settlement] })).toEqual(['recorded']);
			expect(await store.reads.countMessages({ scope: { campaign } })).toEqual({ sent: 2, canceled: 1 });
		});

		it('when canceled, wait until a dead worker’s leases expire, then cancel its messages', async () => {
			const campaign = await releasedCampaign(store, list_id, 'job');
			await lease(store);
			await store.writes.cancelCampaign({ campaign, now: noon });
			expect(await lease(store, { now: noon + 2 * hour })).toEqual([]);
			expect(await store.reads.countMessages({ scope: { campaign } })).toEqual({ canceled: 3 });
		});

		it('when canceled, do not wait for the leases of a dead local process', async () => {
			const campaign = await releasedCampaign(store, list_id, 'job');
			const [host, pid, mark] = leaseOwner('x').split(':');
			await lease(store, { max: 1, owner: leaseOwner('x') });
			await lease(store, { max: 1, owner: `${host}:${pid}:${mark?.replace(/\d+$/, '1')}:earlier` });
			await store.writes.cancelCampaign({ campaign, now: noon });
			expect(await store.reads.countMessages({ scope: { campaign } })).toEqual({ leased: 1, canceled: 2 });
		});

		it.each<[string, (id: string) => Promise<unknown>]>([
			['a campaign', (campaign) => store.writes.cancelCampaign({ campaign, now: noon })],
			['send calls', (campaign) => store.writes.cancelCampaign({ campaign, now: noon })],
			['a list', () => store.writes.deleteList({ id: list_id, now: noon })],
			['a subscriber', () => store.writes.deleteSubscriber({ list_id, id: 1, now: noon })],
		])('do not send their leased messages after a client cancels or deletes %s', async (what, cancel) => {
			const campaign = what === 'send calls' ? newUuid() : await releasedCampaign(store, list_id, 'job');
			if (what === 'send calls')
				await send(store, ['a@example.org', 'b@example.org'], { type: 'BULK', campaign });
			const leased = await lease(store, { max: 2 });
			const ids = leased.map(({ message }) => message);
			const revoked = async () => (await store.reads.revokedLeases({ fences: leased })).toSorted();
			expect(await revoked()).toEqual([]);
			await cancel(campaign);
			const gone = what === 'a subscriber' ? ids.slice(0, 1) : ids;
			expect(await revoked()).toEqual(gone.toSorted());
			const outcome = { kind: 'released', why: 'drain' } as const;
			const settlements = ids.map((message) => ({ message, fence: 1, at: noon, outcome }));
			expect(await store.queue.settle({ settlements })).toEqual(['recorded', 'recorded']);
			const later = await lease(store, { now: noon + 2 * hour });
			expect(later.map(({ message }) => message).filter((id) => gone.includes(id))).toEqual([]);
		});

		it('count the messages of send calls and of batches separately, before and after the release', async () => {
			const campaign = await staged('job');
			const page = { page: 1, page_size: 9, key: 'job', now: noon };
			const told = async () => ({
				...(await store.reads.campaignStatus({ id: campaign, now: noon })),
				created: (await store.reads.pageCampaigns(page)).results[0]?.figures?.created,
			});
			expect(await told()).toMatchObject({ messages: { staged: 3 }, created: 0 });
			expect(await told()).not.toHaveProperty('joined');
			await send(store, ['x@example.org', 'y@example.org'], { campaign });
			await send(store, ['z@example.org']);
			expect(await told()).toMatchObject({ messages: { staged: 3 }, joined: { queued: 2 }, created: 2 });
			await release(campaign, 3);
			expect(await told()).toMatchObject({ messages: { queued: 3 }, joined: { queued: 2 }, created: 5 });
			for (let sent = 0; sent < 6; sent += 1)
				await deliver(store, { kind: 'sent', reply: accepted250 }, noon + hour);
			expect(await told()).toMatchObject({ messages: { sent: 3 }, joined: { sent: 2 }, is_finished: true });
		});

		it('count the states of their own messages only', async () => {
			const other = campaignOf('other');
			await store.writes.openCampaign(other);
			await put(store, other.id, 0, ['x@example.org', 'y@example.org']);
			await store.writes.releaseCampaign({ campaign: other.id, expect_count: 2, now: noon });
			for (const kind of ['sent', 'failed'] as const)
				await deliver(store, kind === 'sent' ? { kind, reply: accepted250 } : { kind, reply: busy451 });
			const command = campaignOf('job');
			await store.writes.openCampaign(command);
			const campaign = command.id;
			const counted = async (expected: Record<string, number>) => {
				const filter = { campaign_unique_id: campaign };
				const { results } = await store.reads.pageMessages({ page: 1, page_size: 99, filter });
				const states: Record<string, number> = {};
				for (const { state } of results) states[state] = (states[state] ?? 0) + 1;
				expect(states).toEqual(expected);
				expect(await store.reads.countMessages({ scope: { campaign } })).toEqual(expected);
				expect(await store.reads.campaignStatus({ id: campaign, now: noon })).toMatchObject({
					messages: expected,
				});
			};
			const people = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => `${name}@example.net`);
			await put(store, campaign, 0, people);
			await counted({ staged: 8 });
			await store.writes.releaseCampaign({ campaign, expect_count: 8, now: noon });
			await counted({ queued: 8 });
			const retry = { kind: 'deferred', reply: busy451, due_at: noon + day } as const;
			await deliver(store, { kind: 'sent', reply: accepted250 });
			await deliver(store, retry);
			await deliver(store, { kind: 'bounced', reply: unknown550, suppress: false });
			await deliver(store, { kind: 'uncertain', reply: busy451 });
			await deliver(store, { kind: 'failed', reply: busy451 });
			await lease(store, { max: 1 });
			const filter = { status: 'queued' as const, campaign_unique_id: campaign };
			const left = await store.reads.pageMessages({ page: 1, page_size: 9, filter });
			const [first] = left.results;
			await store.writes.changeMessage({ id: first?.id ?? '', action: 'cancel', now: noon });
			const over = { sent: 1, bounced: 1, uncertain: 1, failed: 1, leased: 1 };
			await counted({ ...over, deferred: 1, canceled: 1, queued: 1 });
			const replies = async () => (await store.reads.campaignStatus({ id: campaign, now: noon }))?.replies;
			expect((await replies())?.map(({ state }) => state)).toContain('deferred');
			await store.writes.cancelCampaign({ campaign, now: noon });
			await counted({ ...over, canceled: 3 });
			expect((await replies())?.map(({ state }) => state)).not.toContain('deferred');
		});
	});
}

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

		it('count only their own rows in row numbers, even after a list is added, and add no recipient twice', async () => {
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

		it('use the meta values of the subscribers of the campaign’s list, and skip its inactive subscribers', async () => {
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

		it('need a campaign whose list exists', async () => {
			const command = campaignOf('job', { list_id: 99 });
			expect(await store.writes.openCampaign(command)).toMatchObject({
				kind: 'refused',
				errors: { list_id: [{ code: 'does_not_exist' }] },
			});
		});
	});
}
