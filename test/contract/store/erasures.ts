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
	newUuid,
	noon,
	type OpenEmpty,
	put,
	releasedCampaign,
	send,
	stateOf,
	submissionOf,
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
		const putRows = async (cells: string[], columns = ['email']) => {
			const spec = { list_id, on_conflict: 'update' as const, reactivate: false };
			const session = await store.writes.openImport({ id: newUuid(), key: newUuid(), spec, now: noon });
			if (session === null || session === 'conflict') throw new Error('no session');
			const batch = { first: 0, columns, cells };
			const put = await store.writes.putImportBatch({ session: session.id, batch, now: noon });
			if (put.kind !== 'acknowledged') throw new Error(put.kind);
			return { ...put.ack, session: session.id, batch };
		};
		const refusal = { kind: 'refused', errors: { email: [{ code: 'erased' }] } };

		it('refuses to create, move and import the address afterwards, in any case, until it is lifted', async () => {
			const { id } = await newSubscriber(store, list_id, 'bob@example.org');
			await erase();
			const move = () =>
				store.writes.patchSubscriber({ list_id, id, patch: { email: 'ANN@example.org' }, now: noon });
			expect(await create('ANN@example.ORG')).toMatchObject(refusal);
			expect(await move()).toMatchObject(refusal);
			expect(await putRows(['carl@example.org', 'Ann@example.org'])).toMatchObject({
				counts: { created: 1, rejected: 1 },
				rejects: [{ row: 1, code: 'erased' }],
			});
			expect(await store.writes.liftErasure({ email_key: 'bob@example.org' })).toBe(false);
			expect(await store.writes.liftErasure({ email_key: ann })).toBe(true);
			expect(await store.writes.liftErasure({ email_key: ann })).toBe(false);
			expect(await move()).toMatchObject({ kind: 'written', record: { email: 'ANN@example.org' } });
		});

		it('keeps one key for all erasures, so that later ones do not undo earlier ones', async () => {
			await erase();
			const another = { id: 1, secret: Buffer.alloc(32, 9).toString('base64url') };
			await store.writes.erasePerson({ email_key: 'bob@example.org', fresh: another, now: noon + day });
			expect(await create(ann)).toMatchObject(refusal);
			expect(await create('bob@example.org')).toMatchObject(refusal);
		});

		it('empties messages that were sent, and keeps them as figures', async () => {
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

		it('records nothing of who follows an old link, and gives nobody a suppression', async () => {
			await send(store, [ann], { type: 'BULK' });
			const id = await deliver(store, { kind: 'sent', reply: accepted250 });
			await erase();
			const before = await figures(store);
			await store.writes.recordEvents({ events: [eventOf(id, 'UNSUBSCRIBED'), eventOf(id, 'OPENED')] });
			expect(await figures(store)).toEqual(before);
			expect((await store.reads.status()).suppressions).toBe(0);
		});

		it('cancels what waits, and takes what a worker holds out of its hands', async () => {
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

		it('leaves content, context and the messages of others alone', async () => {
			const answer = await send(store, [ann, 'bob@example.org'], { context: { issue: '7' } });
			await erase();
			const submission = await store.reads.getSubmission({ id: answer.submission });
			expect(submission?.content.text).toBe('Hello');
			expect((await lease(store)).map(({ to }) => to)).toEqual(['bob@example.org']);
		});

		it('takes the address out of the copies and answers of other people', async () => {
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

		it('keeps the answers of repeated calls, without the address', async () => {
			const key = { scope: '', key: 'k', fingerprint: 'f' };
			const call = { ...submissionOf(['Ann@example.org', 'joann@example.org']), key };
			await store.writes.acceptSubmission(call);
			const first = await putRows(['x@example.org', 'ann@example.org', 'ANN@example.org']);
			await erase();
			expect(await store.writes.acceptSubmission(call)).toMatchObject({
				kind: 'replayed',
				answer: { messages: [{ to: gone }, { to: 'joann@example.org' }] },
			});
			const { session, batch } = first;
			expect(await store.writes.putImportBatch({ session, batch, now: noon })).toMatchObject({
				ack: { rejects: [{ error: `email: ${gone} stands in this import already.` }] },
			});
		});

		it('drops suppressions, and lets no bulk mail through all the same', async () => {
			await newSubscriber(store, list_id, ann);
			await send(store, [ann], { type: 'BULK', list_id });
			const id = await deliver(store, { kind: 'sent', reply: accepted250 });
			await store.writes.recordEvents({ events: [eventOf(id, 'UNSUBSCRIBED')] });
			expect(await erase()).toMatchObject({ suppressions: 1 });
			expect((await store.reads.status()).suppressions).toBe(0);
			expect((await send(store, [ann], { type: 'BULK' })).answer.messages_created).toBe(0);
			expect((await send(store, [ann])).answer.messages_created).toBe(1);
		});

		it('takes the address out of the results of campaigns, whether there was a message or not', async () => {
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

		it('gives the messages of a campaign ids that no longer follow from the address', async () => {
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
