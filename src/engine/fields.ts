import type { Crud } from '../api/api.js';
import { type FieldInput, type FieldsPlus, fieldFields } from '../api/inputs.js';
import type { Field } from '../api/records.js';
import { checkedBeside, crud, type EngineContext, found } from './context.js';

export function createFields(context: EngineContext): Crud<Field, FieldInput> {
	const { store, clock } = context;
	const { reads, writes } = store;
	const fieldErrors =
		(id: number | null) =>
		({ variable }: Partial<FieldInput>) =>
			reads.fieldErrors({ kind: 'field', id, ...(variable !== undefined && { variable }) });
	return crud(context, {
		path: '/sub/fields/',
		page: reads.pageFields,
		get: (id: number) => reads.getField({ id }),
		create: async (body) => {
			const input = await checkedBeside(fieldFields.parse(body, 'create'), fieldErrors(null));
			return writes.createField({ input, now: clock.now() });
		},
		change: async (id, body, mode) => {
			const patch = await checkedBeside(fieldFields.parse(body, mode), fieldErrors(id));
			return writes.patchField({ id, patch });
		},
		delete: (id, call) => writes.deleteField({ id }, call),
	});
}

export function createFieldsPlus({ store }: EngineContext): FieldsPlus {
	return {
		countUses: async (id) => {
			found(await store.reads.getField({ id }));
			return store.reads.countFieldUses({ id });
		},
	};
}
