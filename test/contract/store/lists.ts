import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import { fixedClock, newList, newSubscriber, noon, type OpenEmpty } from './fixture.js';

export function describeLists(open: OpenEmpty): void {
	describe('lists', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			return () => store.close();
		});

		it('count the new subscribers of each day, except deleted ones', async () => {
			const day = { from: '2026-03-10', to: '2026-03-11', campaign: null, lists: true } as const;
			expect((await store.reads.reportDetails(day)).lists).toEqual([]);
			const id = await newList(store);
			const other = await newList(store, 'Other');
			const added = async () => {
				const { lists } = await store.reads.reportDetails(day);
				expect(await store.reads.checkCounts({})).toMatchObject({ figures: 0 });
				return lists?.map((list) => [
					list.active,
					list.days.flatMap(({ kind, day, count }) => (kind === 'added' ? [[day, count]] : [])),
				]);
			};
			const ann = await newSubscriber(store, id, 'ann@example.org');
			await newSubscriber(store, id, 'bob@example.org', { is_active: false });
			const later = noon + 24 * 3_600_000_000;
			const input = { email: 'cy@example.org' };
			await store.writes.createSubscriber({ list_id: id, input, now: later });
			await store.writes.createSubscriber({ list_id: other, input, now: later });
			const spec = { list_id: id, on_conflict: 'update', reactivate: false } as const;
			const opened = await store.writes.openImport({ id: 'i', key: 'k', spec, now: later });
			expect(opened).toMatchObject({ position: 0 });
			const cells = ['ann@example.org', 'dan@example.org', 'eve@example.org'];
			const batch = { first: 0, columns: ['email'], cells };
			await store.writes.putImportBatch({ session: 'i', batch, now: later });
			expect(await added()).toEqual([
				[
					4,
					[
						['2026-03-10', 2],
						['2026-03-11', 3],
					],
				],
				[1, [['2026-03-11', 1]]],
			]);
			await store.writes.deleteSubscriber({ list_id: id, id: ann.id, now: later });
			await store.writes.erasePerson({
				email_key: 'cy@example.org',
				fresh: { id: 1, secret: Buffer.alloc(32, 7).toString('base64url') },
				now: later,
			});
			expect(await added()).toEqual([
				[
					2,
					[
						['2026-03-10', 1],
						['2026-03-11', 2],
					],
				],
				[0, []],
			]);
			// Neither list counts a subscriber who was added after the range.
			const before = await store.reads.reportDetails({ ...day, to: '2026-03-10' });
			expect(before.lists?.map(({ active }) => active)).toEqual([0, 0]);
			await store.writes.deleteList({ id, now: later });
			expect(await added()).toEqual([[0, []]]);
		});
	});
}
