import { beforeEach, describe, expect, it } from 'vitest';
import type { ImportSpec } from '../../../src/api/capabilities.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	deliver,
	eventOf,
	fixedClock,
	newField,
	newList,
	newSubscriber,
	newUuid,
	noon,
	type OpenEmpty,
	send,
	unknown550,
	verify,
} from './fixture.js';

export function describeImports(open: OpenEmpty): void {
	describe('imports', () => {
		let store: Store;
		let list_id: number;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			list_id = await newList(store);
			return () => store.close();
		});
		const session = async (more: Partial<ImportSpec> = {}, key = newUuid()) => {
			const spec: ImportSpec = { list_id, on_conflict: 'update', reactivate: false, ...more };
			const opened = await store.writes.openImport({ id: newUuid(), key, spec, now: noon });
			if (opened === null || opened === 'conflict') throw new Error(`not opened: ${opened}`);
			return opened;
		};
		const put = (id: string, columns: string, rows: (string | null)[][], first = 0) =>
			store.writes.putImportBatch({
				session: id,
				batch: { first, columns: columns.split(' '), cells: rows.flat() },
				now: noon,
			});
		const load = async (columns: string, rows: (string | null)[][], more: Partial<ImportSpec> = {}) => {
			const outcome = await put((await session(more)).id, columns, rows);
			if (outcome.kind !== 'acknowledged') throw new Error(outcome.kind);
			const { created, updated, unchanged, duplicate, rejected } = outcome.ack.counts;
			return [created, updated, unchanged, duplicate, rejected];
		};
		const all = async () =>
			((await store.reads.sliceSubscribers({ list_id, after: 0, limit: 99, filter: {} })) ?? []).map(
				({ email, name, is_active, disable_reason, meta }) => ({
					email,
					name,
					is_active,
					disable_reason,
					meta,
				}),
			);
		const unsubscribed = async (email: string) => {
			await send(store, [email], { type: 'BULK', list_id });
			const message = await deliver(store, { kind: 'sent', reply: accepted250 });
			await store.writes.recordEvents({ events: [eventOf(message, 'UNSUBSCRIBED')] });
		};

		it('skip or reject existing people on request', async () => {
			await newSubscriber(store, list_id, 'a@example.org', { name: 'Ann' });
			const rows = [['a@example.org', 'Other']];
			expect(await load('email name', rows, { on_conflict: 'skip' })).toEqual([0, 0, 1, 0, 0]);
			expect(await load('email name', rows, { on_conflict: 'error' })).toEqual([0, 0, 0, 0, 1]);
			expect((await all())[0]?.name).toBe('Ann');
		});

		it('use the first row for each address, and count later rows as duplicates, even in another batch', async () => {
			await newSubscriber(store, list_id, 'old@example.org');
			for (const on_conflict of ['update', 'skip'] as const) {
				const { id } = await session({ on_conflict });
				const who = `${on_conflict}@example.org`;
				await put(id, 'email name', [
					[who, 'First'],
					['old@example.org', null],
				]);
				const rows = [
					[who.toUpperCase(), 'Second'],
					['old@example.org', 'Second'],
				];
				const outcome = await put(id, 'email name', rows, 2);
				expect(outcome).toMatchObject({
					ack: {
						position: 4,
						counts: { duplicate: 2, updated: 0, unchanged: 0 },
						rejects: [
							{ row: 2, code: 'duplicate' },
							{ row: 3, code: 'duplicate' },
						],
					},
				});
			}
			expect((await all()).filter(({ name }) => name === 'Second')).toEqual([]);
		});

		it('update an existing person among new people, and count a repeated address as a duplicate', async () => {
			await newSubscriber(store, list_id, 'old@example.org');
			const { id } = await session();
			const batches = [['a', 'b'], ['c', 'd'], ['e', 'old', 'a', 'f'], ['g', 'g'], ['h']];
			const counts = [];
			let first = 0;
			for (const names of batches) {
				const outcome = await put(
					id,
					'email name',
					names.map((name) => [`${name}@example.org`, 'N']),
					first,
				);
				if (outcome.kind !== 'acknowledged') throw new Error(outcome.kind);
				const { created, updated, duplicate } = outcome.ack.counts;
				counts.push([created, updated, duplicate, outcome.ack.rejects.map(({ row }) => row)]);
				first += names.length;
			}
			expect(counts).toEqual([
				[2, 0, 0, []],
				[2, 0, 0, []],
				[2, 1, 1, [6]],
				[1, 0, 1, [9]],
				[1, 0, 0, []],
			]);
			const names = ['old', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
			expect((await all()).map(({ email }) => email)).toEqual(names.map((name) => `${name}@example.org`));
			expect((await store.reads.getList({ id: list_id }))?.active_subscribers_count).toBe(names.length);
		});

		it('get the answer list_gone after a client deletes their list', async () => {
			const { id } = await session();
			await store.writes.deleteList({ id: list_id, now: noon });
			expect(await put(id, 'email', [['a@example.org']])).toEqual({ kind: 'list_gone' });
		});

		it('add a suppressed address as an inactive subscriber, with the reason of the suppression', async () => {
			await unsubscribed('u@example.org');
			expect(await load('email is_active', [['u@example.org', 'true']])).toEqual([1, 0, 0, 0, 0]);
			expect((await all())[0]).toMatchObject({ is_active: false, disable_reason: 'UNSUBSCRIBED' });
			expect((await store.reads.getList({ id: list_id }))?.inactive_subscribers_count).toBe(1);
		});

		it('reactivate people only on request, and never after a hard bounce', async () => {
			for (const who of ['u', 'h', 'i']) await newSubscriber(store, list_id, `${who}@example.org`);
			await unsubscribed('u@example.org');
			await send(store, ['h@example.org']);
			await deliver(store, { kind: 'bounced', reply: unknown550, suppress: true });
			await store.writes.patchSubscriber({ list_id, id: 3, patch: { is_active: false }, now: noon });
			const rows = ['u', 'h', 'i'].map((who) => [`${who}@example.org`, '1']);
			expect(await load('email is_active', rows)).toEqual([0, 0, 3, 0, 0]);
			expect(await load('email is_active', rows, { reactivate: true })).toEqual([0, 2, 1, 0, 0]);
			expect((await all()).map((one) => [one.is_active, one.disable_reason])).toEqual([
				[true, null],
				[false, 'HARDBOUNCED'],
				[true, null],
			]);
		});

		it('read typed values from a meta cell, and reject only rows with an invalid value', async () => {
			for (const variable of ['city', 'age', 'vip']) await newField(store, variable);
			const columns = 'email meta meta.city';
			expect(
				await load(columns, [
					['a@example.org', '{"age": 7, "vip": false, "city": "Rome"}', 'Oslo'],
					['b@example.org', '{"city": "", "age": null}', null],
					['c@example.org', null, null],
					['d@example.org', '{"shoe": 44}', 'Oslo'],
					['e@example.org', '{"age": [7]}', null],
					['f@example.org', 'seven', null],
				]),
			).toEqual([3, 0, 0, 0, 3]);
			expect((await all()).map(({ meta }) => meta)).toEqual([
				{ age: 7, vip: false, city: 'Oslo' },
				{ city: '', age: null },
				{},
			]);
			expect(await load(columns, [['a@example.org', '{"age": 7}', 'Oslo']])).toEqual([0, 0, 1, 0, 0]);
			expect(await load(columns, [['a@example.org', '{"shoe": 7}', 'Oslo']])).toEqual([0, 0, 0, 0, 1]);
			expect(await load(columns, [['a@example.org', '{"age": "7"}', null]])).toEqual([0, 1, 0, 0, 0]);
		});

		describe('rows with a disable_reason', () => {
			const columns = 'email disable_reason';
			let other: number;
			const elsewhere = async (email: string) => {
				const filter = { email__exact: email };
				const page = { list_id: other, filter, page: 1, page_size: 9 };
				const [found] = (await store.reads.pageSubscribers(page))?.results ?? [];
				return [found?.is_active, found?.disable_reason];
			};
			const standing = async () => {
				const page = { filter: {}, now: noon, page: 1, page_size: 9 };
				const { results } = await store.reads.pageSuppressions(page);
				return results.map((one) => `${one.email} ${one.reason} ${one.source} ${one.list_id}`);
			};
			const activities = async () => (await all()).map((one) => [one.is_active, one.disable_reason]);
			beforeEach(async () => {
				other = await newList(store, 'Other');
				for (const who of ['c', 'h', 'u', 'x']) await newSubscriber(store, other, `${who}@example.org`);
			});
			const rows = [
				['c@example.org', 'Complained'],
				['h@example.org', 'HARDBOUNCED'],
				['u@example.org', ' unsubscribed '],
			];

			it('suppress the address permanently, as a bounce, complaint or unsubscription does', async () => {
				expect(await load(columns, rows)).toEqual([3, 0, 0, 0, 0]);
				expect(await standing()).toEqual([
					'c@example.org COMPLAINED IMPORT null',
					'h@example.org HARDBOUNCED IMPORT null',
					`u@example.org UNSUBSCRIBED IMPORT ${list_id}`,
				]);
				expect(await activities()).toEqual([
					[false, 'COMPLAINED'],
					[false, 'HARDBOUNCED'],
					[false, 'UNSUBSCRIBED'],
				]);
				expect(await elsewhere('c@example.org')).toEqual([false, 'COMPLAINED']);
				expect(await elsewhere('u@example.org')).toEqual([true, null]);
				expect(await store.reads.getList({ id: other })).toMatchObject({
					active_subscribers_count: 2,
					inactive_subscribers_count: 2,
				});
				const to = rows.map(([email = '']) => email ?? '');
				expect((await send(store, to)).answer.messages.map((one) => one.to)).toEqual(['u@example.org']);
				await store.writes.clearList({ id: list_id, now: noon });
				for (const email of to) expect((await newSubscriber(store, list_id, email)).is_active).toBe(false);
			});

			it('suppress people who are in the list already, even if nothing else changes', async () => {
				await load(columns, rows);
				for (const [email_key = ''] of rows)
					await store.writes.removeSuppressions({
						...{ email_key: email_key ?? '', reason: null, list_id: null, now: noon },
					});
				expect(await load(columns, rows)).toEqual([0, 0, 3, 0, 0]);
				expect(await standing()).toHaveLength(3);
				await newSubscriber(store, list_id, 'x@example.org');
				expect(await load(columns, [['x@example.org', 'COMPLAINED']])).toEqual([0, 1, 0, 0, 0]);
				expect(await elsewhere('x@example.org')).toEqual([false, 'COMPLAINED']);
			});

			it.each([
				['skip', [0, 2, 3, 0, 0]],
				['error', [0, 0, 0, 0, 5]],
			] as const)('suppress existing people with on_conflict %s, but change nothing else about them', async (on_conflict, counts) => {
				for (const who of ['c', 'h', 'u', 'x']) await newSubscriber(store, list_id, `${who}@example.org`);
				await load(columns, [['u@example.org', 'UNSUBSCRIBED']]);
				await load(columns, [['x@example.org', 'moved away']]);
				const more = [
					['c@example.org', 'Changed', 'complained'],
					['h@example.org', null, 'HARDBOUNCED'],
					['u@example.org', null, 'UNSUBSCRIBED'],
					['x@example.org', null, 'of his own'],
				];
				await newSubscriber(store, list_id, 'y@example.org');
				const last = [['y@example.org', 'Changed', null]];
				expect(await load('email name disable_reason', [...more, ...last], { on_conflict })).toEqual([
					...counts,
				]);
				expect(await standing()).toEqual([
					'c@example.org COMPLAINED IMPORT null',
					'h@example.org HARDBOUNCED IMPORT null',
					`u@example.org UNSUBSCRIBED IMPORT ${list_id}`,
				]);
				expect((await all()).map((one) => [one.name, one.is_active, one.disable_reason])).toEqual([
					['', false, 'COMPLAINED'],
					['', false, 'HARDBOUNCED'],
					['', false, 'UNSUBSCRIBED'],
					['', false, 'moved away'],
					['', true, null],
				]);
				expect(await elsewhere('c@example.org')).toEqual([false, 'COMPLAINED']);
				expect(await store.reads.getList({ id: list_id })).toMatchObject({
					active_subscribers_count: 1,
					inactive_subscribers_count: 4,
				});
			});

			it('suppress the address in all lists if unsubscribe_scope is all', async () => {
				await store.writes.putSettings({ values: { unsubscribe_scope: 'all' }, now: noon });
				await load(columns, [['u@example.org', 'UNSUBSCRIBED']]);
				expect(await elsewhere('u@example.org')).toEqual([false, 'UNSUBSCRIBED']);
			});
		});
	});
}
