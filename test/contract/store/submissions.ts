import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
	day,
	fixedClock,
	messageIds,
	newList,
	newSubscriber,
	noon,
	type OpenEmpty,
	send,
	submissionOf,
	verify,
} from './fixture.js';

export function describeSubmissions(open: OpenEmpty): void {
	describe('accepting a send call', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			return () => store.close();
		});
		const recipients = async (to: string[], more: object) =>
			(await send(store, to, more)).answer.messages.map((message) => message.to);

		it('skips inactive people for bulk mail of a list, but not for transactional mail', async () => {
			const list_id = await newList(store);
			await newSubscriber(store, list_id, 'a@example.org', { is_active: false });
			expect(await recipients(['a@example.org'], { type: 'BULK', list_id })).toEqual([]);
			expect(await recipients(['a@example.org'], { list_id })).toEqual(['a@example.org']);
		});

		it('returns the first answer again if the idempotency key and body are repeated within a day', async () => {
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

		it('does not store the idempotency key of a rejected call', async () => {
			const key = { scope: '', key: 'k', fingerprint: 'f' };
			const refused = submissionOf(['a@example.org'], { from_key: 'eve@example.org' });
			await store.writes.acceptSubmission({ ...refused, key });
			const mended = { ...submissionOf(['a@example.org']), key: { ...key, fingerprint: 'g' } };
			expect(await store.writes.acceptSubmission(mended)).toMatchObject({ kind: 'accepted' });
		});
	});
}
