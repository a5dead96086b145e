import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	day,
	deliver,
	eventOf,
	figures,
	fixedClock,
	lease,
	messageIds,
	newField,
	newList,
	newSubscriber,
	noon,
	type OpenEmpty,
	send,
	submissionOf,
	unknown550,
	verify,
} from './fixture.js';

export function describeSubmissions(open: OpenEmpty): void {
	describe('accepting', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			return () => store.close();
		});
		const suppress = async (email: string, kind: 'hard' | 'unsubscribed') => {
			await send(store, [email]);
			if (kind === 'hard') {
				await deliver(store, { kind: 'bounced', reply: unknown550, suppress: true });
				return;
			}
			const message = await deliver(store, { kind: 'sent', reply: accepted250 });
			await store.writes.recordEvents({ events: [eventOf(message, 'UNSUBSCRIBED')] });
		};
		const recipients = async (to: string[], more: object) =>
			(await send(store, to, more)).answer.messages.map((message) => message.to);

		it('answers one message a recipient, in order', async () => {
			const submission = submissionOf(['b@example.org', 'a@example.org']);
			expect(await store.writes.acceptSubmission({ ...submission, key: null })).toEqual({
				kind: 'accepted',
				answer: {
					messages: submission.recipients.map(({ id, to }) => ({ to, id })),
					result: true,
					messages_created: 2,
				},
				submission: submission.id,
				campaign: null,
			});
			expect(await store.reads.getSubmission({ id: submission.id })).toEqual({
				id: submission.id,
				type: 'TRANSACTIONAL',
				envelope: submission.envelope,
				tag: null,
				campaign: null,
				content: submission.content,
				content_sha256: submission.content_sha256,
				tracking: 'on',
			});
		});

		it('refuses an unverified sender and an unknown list, both at once, and creates nothing', async () => {
			const submission = submissionOf(['a@example.org'], { from_key: 'eve@example.org', list_id: 99 });
			expect(await store.writes.acceptSubmission({ ...submission, key: null })).toEqual({
				kind: 'refused',
				errors: {
					from: [{ code: 'not_verified', message: 'Sender address is not verified.' }],
					list_id: [{ code: 'does_not_exist', message: 'Invalid pk "99" - object does not exist.' }],
				},
			});
			expect(await messageIds(store)).toEqual([]);
		});

		it('leaves out suppressed recipients: all of them in bulk mail, undeliverable ones in personal mail', async () => {
			await suppress('hard@example.org', 'hard');
			await suppress('gone@example.org', 'unsubscribed');
			const to = ['hard@example.org', 'gone@example.org', 'ok@example.org'];
			expect(await recipients(to, {})).toEqual(['gone@example.org', 'ok@example.org']);
			expect(await recipients(to, { type: 'BULK' })).toEqual(['ok@example.org']);
			expect((await send(store, ['hard@example.org'])).answer).toEqual({
				messages: [],
				result: true,
				messages_created: 0,
			});
		});

		it('leaves copies to undeliverable addresses out', async () => {
			await suppress('hard@example.org', 'hard');
			const envelope = {
				from: 'desk@example.org',
				reply_to: [],
				cc: ['Hard <hard@example.org>', 'cc@example.org'],
				bcc: ['HARD@example.org'],
				headers: {},
			};
			const { submission } = await send(store, ['a@example.org'], { envelope });
			expect((await store.reads.getSubmission({ id: submission }))?.envelope).toMatchObject({
				cc: ['cc@example.org'],
				bcc: [],
			});
		});

		it('sends no bulk mail of a list to who is inactive in it, but personal mail', async () => {
			const list_id = await newList(store);
			await newSubscriber(store, list_id, 'a@example.org', { is_active: false });
			expect(await recipients(['a@example.org'], { type: 'BULK', list_id })).toEqual([]);
			expect(await recipients(['a@example.org'], { list_id })).toEqual(['a@example.org']);
		});

		it('makes a bulk call a campaign of its own, unless it joins one', async () => {
			const bulk = await send(store, ['a@example.org'], { type: 'BULK' });
			expect(bulk.campaign).toBe(bulk.submission);
			const joined = await send(store, ['b@example.org'], { type: 'BULK', campaign: bulk.submission });
			expect(joined.campaign).toBe(bulk.submission);
			expect(await figures(store, { campaign: bulk.submission })).toEqual(['2026-03-10 CREATED 2']);
		});

		it('keeps the used variables: context over meta over built-ins', async () => {
			for (const variable of ['city', 'age', 'unused']) await newField(store, variable);
			const list_id = await newList(store);
			const meta = { city: 'Oslo', age: '5', unused: 'x' };
			await newSubscriber(store, list_id, 'a@example.org', { name: 'Ann', meta });
			const variables = ['city', 'age', 'name', 'email', 'email_reason', 'missing', 'unsubscribe_url'];
			await send(store, ['a@example.org'], { variables, context: { city: 'Rome', other: 'x' } });
			const [leased] = await lease(store);
			expect(leased?.variables).toEqual({
				city: 'Rome',
				age: '5',
				name: 'Ann',
				email: 'a@example.org',
				email_reason: 'You read News',
			});
			expect(leased?.list_id).toBe(list_id);
		});

		it('knows the subscriber of the given list, or the only one, or none', async () => {
			await newField(store, 'city');
			const [here, there] = [await newList(store), await newList(store, 'Other')];
			await newSubscriber(store, here, 'a@example.org', { meta: { city: 'Oslo' } });
			await newSubscriber(store, there, 'a@example.org', { meta: { city: 'Rome' } });
			await newSubscriber(store, there, 'b@example.org', { meta: { city: 'Bonn' } });
			const seen = async (to: string, list_id: number | null) => {
				await send(store, [to], { variables: ['city'], list_id });
				const [leased] = await lease(store);
				return [leased?.list_id, leased?.variables['city']];
			};
			expect(await seen('a@example.org', there)).toEqual([there, 'Rome']);
			expect(await seen('a@example.org', null)).toEqual([null, undefined]);
			expect(await seen('b@example.org', null)).toEqual([there, 'Bonn']);
			expect(await seen('b@example.org', here)).toEqual([here, undefined]);
		});

		it('answers the same key and body again for a day, and makes nothing twice', async () => {
			const key = { scope: 'token', key: 'k', fingerprint: 'f' };
			const first = submissionOf(['a@example.org'], { type: 'BULK' });
			const accepted = await store.writes.acceptSubmission({ ...first, key });
			const again = { ...submissionOf(['a@example.org'], { type: 'BULK' }), key };
			expect(await store.writes.acceptSubmission(again)).toEqual({ ...accepted, kind: 'replayed' });
			const changed = { ...again, key: { ...key, fingerprint: 'other' } };
			expect(await store.writes.acceptSubmission(changed)).toEqual({ kind: 'key_conflict' });
			const elsewhere = { ...submissionOf(['a@example.org']), key: { ...key, scope: 'another' } };
			expect(await store.writes.acceptSubmission(elsewhere)).toMatchObject({ kind: 'accepted' });
			const tomorrow = { ...submissionOf(['a@example.org'], { now: noon + day }), key };
			expect(await store.writes.acceptSubmission(tomorrow)).toMatchObject({ kind: 'accepted' });
			expect(await messageIds(store)).toHaveLength(3);
		});

		it('keeps no key of a refused call', async () => {
			const key = { scope: '', key: 'k', fingerprint: 'f' };
			const refused = submissionOf(['a@example.org'], { from_key: 'eve@example.org' });
			await store.writes.acceptSubmission({ ...refused, key });
			const mended = { ...submissionOf(['a@example.org']), key: { ...key, fingerprint: 'g' } };
			expect(await store.writes.acceptSubmission(mended)).toMatchObject({ kind: 'accepted' });
		});

		it('filters messages by state, address, campaign and time', async () => {
			const bulk = await send(store, ['a@example.org'], { type: 'BULK', now: noon + day });
			await send(store, ['b@example.org']);
			await deliver(store, { kind: 'sent', reply: accepted250 });
			const to = async (filter: Parameters<Store['reads']['pageMessages']>[0]['filter']) =>
				(await store.reads.pageMessages({ filter, page: 1, page_size: 9 })).results.map((one) => one.to);
			expect(await to({ status: 'sent' })).toEqual(['b@example.org']);
			expect(await to({ to_key: 'a@example.org' })).toEqual(['a@example.org']);
			expect(await to({ campaign_unique_id: bulk.submission })).toEqual(['a@example.org']);
			expect(await to({ since_at: noon + 1 })).toEqual(['a@example.org']);
			expect(await to({})).toEqual(['a@example.org', 'b@example.org']);
			expect(await store.reads.countMessages({ scope: null })).toEqual({ sent: 1, queued: 1 });
			expect(await store.reads.countMessages({ scope: { submission: bulk.submission } })).toEqual({
				queued: 1,
			});
		});
	});
}
