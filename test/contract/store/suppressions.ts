import { beforeEach, describe, expect, it } from 'vitest';
import type { NewSuppression, SuppressionFilter } from '../../../src/api/suppressions.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	day,
	deliver,
	fixedClock,
	hour,
	lease,
	newList,
	newSubscriber,
	newUuid,
	noon,
	type OpenEmpty,
	send,
	stateOf,
	verify,
} from './fixture.js';

const ann = 'ann@example.org';
const bob = 'bob@example.org';

export function describeSuppressions(open: OpenEmpty): void {
	describe('suppressions of an address', () => {
		let store: Store;
		let list_id: number;
		beforeEach(async () => {
			store = await open(fixedClock);
			list_id = await newList(store);
			await verify(store);
			return () => store.close();
		});
		const row = (email_key: string, more: Partial<NewSuppression> = {}): NewSuppression => ({
			email_key,
			reason: 'MANUAL',
			list_id: null,
			source: 'API',
			created_at: null,
			expires_at: null,
			...more,
		});
		const add = async (rows: NewSuppression[], now = noon) =>
			(await store.writes.putSuppressions({ rows, now })).counts;
		const remove = (email_key: string, reason: NewSuppression['reason'] | null = null, now = noon) =>
			store.writes.removeSuppressions({ email_key, reason, list_id: null, now });
		const found = async (filter: SuppressionFilter = {}, now = noon) => {
			const page = await store.reads.pageSuppressions({ filter, now, page: 1, page_size: 100 });
			expect(page.count).toBe(page.results.length);
			return page.results.map(({ email, reason }) => `${email} ${reason}`);
		};
		const activity = async (id: number) => {
			const one = await store.reads.getSubscriber({ list_id, id });
			return [one?.is_active, one?.disable_reason];
		};

		it('keep the latest expiry when they are added again', async () => {
			const until = (at: number | null) => add([row(ann, { expires_at: at })]);
			expect(await until(noon + day)).toMatchObject({ created: 1 });
			expect(await until(noon + hour)).toMatchObject({ unchanged: 1 });
			expect(await until(noon + 2 * day)).toMatchObject({ updated: 1 });
			expect(await until(null)).toMatchObject({ updated: 1 });
			expect(await until(noon + day)).toMatchObject({ unchanged: 1 });
			expect(await found({}, noon + 9 * day)).toEqual([`${ann} MANUAL`]);
		});

		it('have no effect after they expire, and can be created again', async () => {
			await add([row(ann, { reason: 'HARDBOUNCED', expires_at: noon + day })]);
			const sent = async (now: number) => (await send(store, [ann], { now })).answer.messages_created;
			expect(await sent(noon + day - 1)).toBe(0);
			expect(await sent(noon + day)).toBe(1);
			expect(await found({}, noon + day)).toEqual([]);
			expect(await remove(ann, null, noon + day)).toBeNull();
			expect(await add([row(ann, { reason: 'HARDBOUNCED' })], noon + 2 * day)).toMatchObject({ created: 1 });
			const again = await store.reads.findSuppression({
				...{ email_key: ann, reason: 'HARDBOUNCED', list_id: null, now: noon },
			});
			expect(again?.date_created).toBe('2026-03-12T12:00:00.000000');
		});

		it('are created or updated exactly as often as compareSuppressions predicts', async () => {
			const ends = [noon + day, noon + hour, noon + 2 * day, null, noon + day];
			const rows = ends.map((expires_at) => row(ann, { expires_at }));
			const compared = await store.reads.compareSuppressions({ rows, now: noon });
			expect(compared.counts).toEqual({ created: 1, updated: 2, unchanged: 2, rejected: 0 });
			expect(await add(rows)).toEqual(compared.counts);
		});

		it.each([
			['COMPLAINED', 0, 0],
			['HARDBOUNCED', 0, 0],
			['UNSUBSCRIBED', 1, 0],
			['SOFTBOUNCED', 1, 0],
			['MANUAL', 1, 0],
		] as const)('with the reason %s allow %d transactional and %d bulk messages (api-decisions 22)', async (reason, single, bulk) => {
			await add([row(ann, { reason })]);
			expect((await send(store, [ann])).answer.messages_created).toBe(single);
			expect((await send(store, [ann], { type: 'BULK' })).answer.messages_created).toBe(bulk);
		});

		it('cancel queued bulk messages, and also transactional ones after a hard bounce or complaint', async () => {
			const queued = async (reason: NewSuppression['reason'], type: 'TRANSACTIONAL' | 'BULK') => {
				const to = `${newUuid()}@example.org`;
				const { answer } = await send(store, [to], { type });
				await add([row(to, { reason })]);
				await lease(store);
				return stateOf(store, answer.messages[0]?.id ?? '');
			};
			expect(await queued('HARDBOUNCED', 'TRANSACTIONAL')).toBe('canceled');
			expect(await queued('COMPLAINED', 'TRANSACTIONAL')).toBe('canceled');
			expect(await queued('UNSUBSCRIBED', 'TRANSACTIONAL')).toBe('leased');
			expect(await queued('MANUAL', 'TRANSACTIONAL')).toBe('leased');
			expect(await queued('MANUAL', 'BULK')).toBe('canceled');
		});

		it('remove hard-bounced and complaining addresses from cc and bcc when a message is accepted', async () => {
			await add([row(ann, { reason: 'COMPLAINED' }), row(bob, { reason: 'UNSUBSCRIBED' })]);
			const envelope = {
				from: 'desk@example.org',
				reply_to: [],
				cc: [ann, bob],
				bcc: [`Ann <${ann}>`],
				headers: {},
			};
			await send(store, ['carl@example.org'], { envelope });
			const [leased] = await lease(store);
			const submission = await store.reads.getSubmission({ id: leased?.submission ?? '' });
			expect(submission?.envelope).toMatchObject({ cc: [bob], bcc: [] });
		});

		it('block an address in cc even in messages that were accepted before', async () => {
			const cc = [`Ann <${ann}>`, bob];
			const envelope = { from: 'desk@example.org', reply_to: [], cc, bcc: [], headers: {} };
			const to = ['carl@example.org', 'dora@example.org'];
			await send(store, to, { envelope });
			const [first] = await lease(store, { max: 1 });
			await add([row(ann, { reason: 'COMPLAINED' }), row(bob, { reason: 'UNSUBSCRIBED' })]);
			const [second] = await lease(store, { max: 1 });
			expect([first?.stopped_copies, second?.stopped_copies]).toEqual([undefined, [ann]]);
		});

		it('are created after five consecutive soft bounces that span at least a week', async () => {
			const { id } = await newSubscriber(store, list_id, ann);
			const fail = async (to: string, at: number) => {
				await send(store, [to], { now: at });
				await deliver(store, { kind: 'failed', reply: busy451 }, at);
			};
			for (const days of [0, 3, 6, 8]) await fail(ann, noon + days * day);
			expect(await found({}, noon + 8 * day)).toEqual([]);
			// After a change of address, bounces of the old address do not count for the new one.
			const patch = { email: bob };
			await store.writes.patchSubscriber({ list_id, id, patch, now: noon + 8 * day });
			await fail(bob, noon + 9 * day);
			expect(await found({}, noon + 9 * day)).toEqual([]);
			for (const days of [11, 13, 15]) await fail(bob, noon + days * day);
			expect(await activity(id)).toEqual([true, null]);
			await fail(bob, noon + 16 * day);
			expect(await activity(id)).toEqual([false, 'SOFTBOUNCED']);
			expect(await found({}, noon + 16 * day)).toEqual([`${bob} SOFTBOUNCED`]);
			await send(store, [bob], { now: noon + 17 * day });
			await deliver(store, { kind: 'sent', reply: accepted250 }, noon + 17 * day);
			expect(await found({}, noon + 17 * day)).toEqual([`${bob} SOFTBOUNCED`]);
		});
	});
}
