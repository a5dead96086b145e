import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import { fixedClock, newField, newList, newSubscriber, noon, type OpenEmpty } from './fixture.js';

export function describeFields(open: OpenEmpty): void {
	describe('fields', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			return () => store.close();
		});
		const unique = {
			kind: 'refused',
			errors: { variable: [{ code: 'unique', message: 'This field must be unique.' }] },
		};

		it('keeps variables unique', async () => {
			const city = await newField(store, 'city');
			const age = await newField(store, 'age');
			const input = { variable: 'city', name: 'Town' };
			expect(await store.writes.createField({ input, now: noon })).toEqual(unique);
			expect(await store.writes.patchField({ id: age, patch: { variable: 'city' } })).toEqual(unique);
			expect(
				await store.writes.patchField({ id: city, patch: { variable: 'city', name: 'Town' } }),
			).toMatchObject({
				kind: 'written',
				record: { id: city, variable: 'city', name: 'Town' },
			});
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

		it('takes the key out of the meta of everybody when it is deleted', async () => {
			const id = await newField(store, 'city');
			await newField(store, 'age');
			const list_id = await newList(store);
			await newSubscriber(store, list_id, 'a@example.org', { meta: { city: 'Oslo', age: '3' } });
			expect(await store.writes.deleteField({ id })).toBe(true);
			expect(await store.writes.deleteField({ id })).toBe(false);
			expect((await store.reads.getSubscriber({ list_id, id: 1 }))?.meta).toEqual({ age: '3' });
			expect(await store.reads.getField({ id })).toBeNull();
			expect(await store.reads.countFieldUses({ id })).toBe(0);
		});

		it('never gives an id of a deleted field again', async () => {
			const id = await newField(store, 'city');
			await store.writes.deleteField({ id });
			expect(await newField(store, 'city')).toBe(id + 1);
			expect((await store.reads.pageFields({ page: 1, page_size: 5 })).count).toBe(1);
		});
	});
}
