/** Additional fields: the variables that subscriber meta may hold. */
import type { Crud } from '../api/api.js';
import type { FieldsPlus } from '../api/capabilities.js';
import { fieldFields } from '../api/fields.js';
import type { FieldInput } from '../api/inputs.js';
import type { Field } from '../api/records.js';
import { checked, deleted, type EngineContext, found, written } from './context.js';
import { readPage } from './pages.js';

/** Additional fields of the database. */
export function createFields(context: EngineContext): Crud<Field, FieldInput> {
	const { store, clock } = context;
	const { reads, writes } = store;
	return {
		page: (request) => readPage(context, request, { path: '/sub/fields/' }, (page) => reads.pageFields(page)),
		get: async (id) => found(await reads.getField({ id })),
		create: async (input) =>
			written(
				await writes.createField({ input: checked(fieldFields.parse(input, 'create')), now: clock.now() }),
			),
		replace: async (id, input) => {
			found(await reads.getField({ id }));
			return written(await writes.patchField({ id, patch: checked(fieldFields.parse(input, 'replace')) }));
		},
		patch: async (id, input) => {
			found(await reads.getField({ id }));
			return written(await writes.patchField({ id, patch: checked(fieldFields.parse(input, 'patch')) }));
		},
		delete: async (id) => deleted(await writes.deleteField({ id })),
	};
}

/** What the document lacks about fields. */
export function createFieldsPlus({ store }: EngineContext): FieldsPlus {
	return {
		countUses: async (id) => {
			found(await store.reads.getField({ id }));
			return store.reads.countFieldUses({ id });
		},
	};
}
