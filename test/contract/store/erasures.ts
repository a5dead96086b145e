import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	campaignOf,
	day,
	deliver,
	eventOf,
	figures,
	fixedClock,
	lease,
	newField,
	newList,
	newSubscriber,
	noon,
	type OpenEmpty,
	put,
	releasedCampaign,
	send,
	stateOf,
	verify,
} from './fixture.js';

const ann = 'ann@example.org';
const gone = 'erased@erased.invalid';

export function describeErasures(open: OpenEmpty): void {
	describe('erasing a person', () => {
		let store: Store;
		let list_id: number;
		beforeEach(async () => {
			store = await open(fixedClock);
			list_id = await newList(store);
			await verify(store);
			return () => store.close();
		});
		const fresh = { id: 1, secret: Buffer.alloc(32, 7).toString('base64url') };
		const erase = (email_key = ann) => store.writes.erasePerson({ email_key, fresh, now: noon });
		const create = (email: string) => store.writes.createSubscriber({ list_id, input: { email }, now: noon });
		const refusal = { kind: 'refused', errors: { email: [{ code: 'erased' }] } };

		it('uses the hash key of the first erasure for all later erasures', async () => {
			await erase();
			const another = { id: 1, secret: Buffer.alloc(32, 9).toString('base64url') };
			await store.writes.erasePerson({ email_key: 'bob@example.org', fresh: another, now: noon + day });
			expect(await create(ann)).toMatchObject(refusal);
			expect(await create('bob@example.org')).toMatchObject(refusal);
		});

		it('clears sent messages but does not change the figures', async () => {
			await newField(store, 'city');
			await newSubscriber(store, list_id, ann, { name: 'Ann', meta: { city: 'Oslo' } });
			await send(store, [ann], { list_id, variables: ['city'], context: { order: '77' } });
			const id = await deliver(store, {
				kind: 'sent',
				reply: { ...accepted250, text: '<ann@example.org> ok' },
			});
			const opened = eventOf(id, 'OPENED', { ip: '10.1.2.3', user_agent: 'Ann’s phone' });
			await store.writes.recordEvents({ events: [opened] });
			const before = await figures(store);
			expect(await erase()).toMatchObject({ subscribers: 1, messages: 1, canceled: 0 });
			const found = await store.reads.getMessage({ id });
			expect(found?.message).toMatchObject({ state: 'sent', to: gone, last_reply: null });
			expect(found?.attempts).toMatchObject([{ code: 250, text: '' }]);
			expect(found?.rendering.variables).toEqual({});
			const submission = await store.reads.getSubmission({ id: found?.rendering.submission ?? '' });
			expect(submission?.content).toMatchObject({ subject: '(erased)', text: '(erased)', html: null });
			expect(await figures(store)).toEqual(before);
		});

		it('disables the links in earlier mails', async () => {
			await send(store, [ann], { type: 'BULK' });
			const id = await deliver(store, { kind: 'sent', reply: accepted250 });
			await erase();
			const before = await figures(store);
			await store.writes.recordEvents({ events: [eventOf(id, 'UNSUBSCRIBED'), eventOf(id, 'OPENED')] });
			expect(await figures(store)).toEqual(before);
			expect((await store.reads.status()).suppressions).toBe(0);
		});

		it('cancels waiting messages and revokes leased ones', async () => {
			await send(store, [ann]);
			const [held] = await lease(store, { max: 1 });
			await send(store, [ann]);
			if (held === undefined) throw new Error('nothing leased');
			expect(await erase()).toMatchObject({ messages: 2, canceled: 2 });
			const { message, fence } = held;
			const outcome = { kind: 'sent' as const, reply: accepted250 };
			const settlements = [{ message, fence, at: noon, outcome }];
			expect(await store.queue.settle({ settlements })).toEqual(['lost_lease']);
			expect(await stateOf(store, message)).toBe('canceled');
			expect(await lease(store, { now: noon + day })).toEqual([]);
		});

		it('keeps shared content and the messages to other recipients', async () => {
			const answer = await send(store, [ann, 'bob@example.org'], { context: { issue: '7' } });
			await erase();
			const submission = await store.reads.getSubmission({ id: answer.submission });
			expect(submission?.content.text).toBe('Hello');
			expect((await lease(store)).map(({ to }) => to)).toEqual(['bob@example.org']);
		});

		it('removes the address from the cc, bcc and Reply-To of messages to other people', async () => {
			const envelope = { from: 'desk@example.org', headers: {} };
			const copies = { reply_to: ['Ann <Ann@example.org>'], cc: ['joann@example.org'], bcc: [ann] };
			const { submission } = await send(store, ['bob@example.org'], { envelope: { ...envelope, ...copies } });
			await erase();
			expect((await store.reads.getSubmission({ id: submission }))?.envelope).toEqual({
				...envelope,
				reply_to: [],
				cc: ['joann@example.org'],
				bcc: [],
			});
		});

		it('removes the address from all campaign results, even from rejected rows', async () => {
			const campaign = campaignOf('job');
			await store.writes.openCampaign(campaign);
			await put(store, campaign.id, 0, [ann, 'Ann@example.org', 'bob@example.org']);
			await erase();
			const command = { id: campaign.id, after: 0, limit: 9, only: null };
			const results = (await store.reads.sliceCampaignResults(command))?.results;
			expect(results?.map(({ to, state, text }) => [to, state, text])).toEqual([
				[gone, 'canceled', null],
				[gone, 'rejected', expect.not.stringMatching(/ann@/i)],
				['bob@example.org', 'staged', null],
			]);
		});

		it('gives the person’s messages new ids, which do not reveal the address', async () => {
			await newSubscriber(store, list_id, ann);
			const campaign = await releasedCampaign(store, list_id, 'monthly');
			const [leased] = await lease(store);
			await erase();
			expect(await stateOf(store, leased?.message ?? '')).toBeUndefined();
			const { results } = await store.reads.pageMessages({ page: 1, page_size: 9, filter: {} });
			expect(results).toMatchObject([{ to: gone, campaign_unique_id: campaign, state: 'canceled' }]);
		});
	});
}
