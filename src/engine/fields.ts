import type { Crud } from '../api/api.js';
import type { FieldInput } from '../api/inputs.js';
import { type FieldsPlus, fieldFields } from '../api/inputs.js';
import type { Field } from '../api/records.js';
import { checkedBeside, deleted, type EngineContext, found, written } from './context.js';
import { readPage } from './pages.js';

export function createFields(context: EngineContext): Crud<Field, FieldInput> {
	const { store, clock } = context;
	const { reads, writes } = store;
	const fieldErrors =
		(id: number | null) =>
		({ variable }: Partial<FieldInput>) =>
			reads.fieldErrors({ kind: 'field', id, ...(variable !== undefined && { variable }) });
	const change = async (id: number, input: unknown, mode: 'replace' | 'patch') => {
		found(await reads.getField({ id }));
		const patch = await checkedBeside(fieldFields.parse(input, mode), fieldErrors(id));
		return written(await writes.patchField({ id, patch }));
	};
	return {
		page: (request) => readPage(context, request, { path: '/sub/fields/' }, (page) => reads.pageFields(page)),
		get: async (id) => found(await reads.getField({ id })),
		create: async (body) => {
			const input = await checkedBeside(fieldFields.parse(body, 'create'), fieldErrors(null));
			return written(await writes.createField({ input, now: clock.now() }));
		},
		replace: (id, input) => change(id, input, 'replace'),
		patch: (id, input) => change(id, input, 'patch'),
		delete: async (id, call) => deleted(await writes.deleteField({ id }, call)),
	};
}

export function createFieldsPlus({ store }: EngineContext): FieldsPlus {
	return {
		countUses: async (id) => {
			found(await store.reads.getField({ id }));
			return store.reads.countFieldUses({ id });
		},
	};
}
