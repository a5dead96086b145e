import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import { fixedClock, newField, newList, noon, type OpenEmpty } from './fixture.js';

export function describeFields(open: OpenEmpty): void {
	describe('fields', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			return () => store.close();
		});
		it('renames the key in the meta of everybody, values unchanged', async () => {
			const id = await newField(store, 'city');
			await newField(store, 'cit');
			const lists = [await newList(store), await newList(store, 'Other')];
			const values = ['Oslo "x"', true, 1.5, null];
			for (const [index, value] of values.entries()) {
				const input = { email: `${index}@example.org`, meta: { cit: 'kept', city: value } };
				await store.writes.createSubscriber({ list_id: lists[index % 2] ?? 0, input, now: noon });
			}
			expect(await store.reads.countFieldUses({ id })).toBe(4);
			await store.writes.patchField({ id, patch: { variable: 'town' } });
			for (const [index, value] of values.entries()) {
				const list_id = lists[index % 2] ?? 0;
				const found = await store.reads.getSubscriber({ list_id, id: index + 1 });
				expect(found?.meta).toEqual({ cit: 'kept', town: value });
			}
			expect(await store.reads.countFieldUses({ id })).toBe(4);
		});
	});
}
