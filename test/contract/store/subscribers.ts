import { beforeEach, describe, expect, it } from 'vitest';
import { type TupleKeys, tupleKeyNames, tupleKeys } from '../../../src/api/exports.js';
import type { Subscriber } from '../../../src/api/records.js';
import type { Store } from '../../../src/store/store.js';
import { fixedClock, newField, newList, newSubscriber, noon, type OpenEmpty, recordOf } from './fixture.js';

export function describeSubscribers(open: OpenEmpty): void {
	describe('subscribers', () => {
		let store: Store;
		let list_id: number;
		beforeEach(async () => {
			store = await open(fixedClock);
			list_id = await newList(store);
			return () => store.close();
		});

		it('have the same JSON whether the store or JSON.stringify encodes them', async () => {
			await addOdd(store, list_id);
			for (const filter of [{}, { is_active: false }, { email__icontains: 'p1' }, { email__exact: 'p9' }]) {
				const page = { list_id, filter, page: 2, page_size: 3 };
				const records = await store.reads.pageSubscribers(page);
				expect(await store.reads.encodeSubscriberPage(page)).toEqual({
					count: records?.count,
					results: encoded(records?.results ?? []),
				});
				const slice = { list_id, filter, after: 0, limit: 100 };
				const people = (await store.reads.sliceSubscribers(slice)) ?? [];
				expect(await store.reads.encodeSubscriberSlice(slice)).toEqual(encoded(people));
				for (const keys of tupleKeyNames) {
					const written = inTuples(people, keys);
					expect(await store.reads.encodeSubscriberTuples({ ...slice, keys })).toEqual(written);
					const read = await store.reads.encodeSubscriberTuples({ ...slice, keys, isChecked: true });
					expect({ ...read, json: JSON.stringify(JSON.parse(read?.json ?? '')) }).toEqual(written);
				}
			}
			const nowhere = { list_id: 9, filter: {} };
			expect(await store.reads.encodeSubscriberPage({ ...nowhere, page: 1, page_size: 1 })).toBeNull();
			const slice = { ...nowhere, after: 0, limit: 1 };
			expect(await store.reads.encodeSubscriberSlice(slice)).toBeNull();
			expect(await store.reads.encodeSubscriberTuples({ ...slice, keys: 'all' })).toBeNull();
		});

		it('have meta keys that a client can replace, merge and unset, even __proto__', async () => {
			for (const variable of ['city', 'age', '__proto__']) await newField(store, variable);
			const { id } = await newSubscriber(store, list_id, 'ann@example.org', {
				meta: { city: 'Oslo', age: '5' },
			});
			const patch = async (patch: object) =>
				recordOf(await store.writes.patchSubscriber({ list_id, id, patch, now: noon })).meta;
			expect(await patch({ merge_meta: { city: 'Rome' }, unset_meta: ['age', 'none'] })).toEqual({
				city: 'Rome',
			});
			const proto = JSON.parse('{"__proto__":"x"}');
			expect(JSON.stringify(await patch({ merge_meta: proto }))).toBe('{"city":"Rome","__proto__":"x"}');
			expect(await patch({ meta: { age: '6' } })).toEqual({ age: '6' });
		});

		it('never reuse an id', async () => {
			const { id } = await newSubscriber(store, list_id, 'ann@example.org');
			await store.writes.deleteSubscriber({ list_id, id, now: noon });
			expect((await newSubscriber(store, list_id, 'ann@example.org')).id).toBeGreaterThan(id);
		});
	});
}

async function addOdd(store: Store, list_id: number): Promise<void> {
	const names = ['city', '__proto__', '10', '2', '"', '\\', 'ø'];
	for (const variable of names) await newField(store, variable);
	const odd = [
		'',
		' ',
		'"\\/\b\f\n\r\t',
		'\u0001\u001f\u007f\u0085',
		"'%s%",
		'é😀\u2028\u2029\ufeff',
		'{}[]',
	];
	const values = [...odd, '\ud800', null, true, 2 ** 53, 2 ** 60, -0, 1e21, 1e-7, 0.1];
	for (const [at, value] of values.entries()) {
		const meta = Object.fromEntries(names.map((name) => [name, value]));
		const input = { email: `p${at}@example.org`, name: odd[at] ?? 'Ann', meta: at === 1 ? {} : meta };
		const now = at === 0 ? noon : noon + at * 86_399_999_989;
		await store.writes.createSubscriber({ list_id, input, now });
	}
	await store.writes.patchSubscriber({ list_id, id: 2, patch: { is_active: false }, now: noon });
}

function inTuples(people: readonly Subscriber[], keys: TupleKeys) {
	const tuples = people.map((person) => tupleKeys[keys].map((key) => person[key]));
	return { ...encoded(people), json: JSON.stringify(tuples) };
}

function encoded(people: readonly Subscriber[]) {
	return { json: JSON.stringify(people), length: people.length, last: people.at(-1)?.id ?? null };
}
