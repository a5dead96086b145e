import type { Templates } from '../api/capabilities.js';
import { invalid } from '../api/errors.js';
import { templateFields } from '../api/inputs.js';
import type { Uuid } from '../api/records.js';
import { bodyErrors } from './contents.js';
import { checkedBeside, crud, type EngineContext } from './context.js';

export function createTemplates(context: EngineContext): Templates {
	const { store, clock, newId } = context;
	const { reads, writes } = store;
	const fieldErrors =
		(id: Uuid | null) =>
		({ name }: { name?: string }) =>
			reads.fieldErrors({ kind: 'template', id, ...(name !== undefined && { name }) });
	return crud(context, {
		path: '/ext/templates/',
		page: reads.pageTemplates,
		get: (id: Uuid) => reads.getTemplate({ id }),
		create: async (body) => {
			const parsed = templateFields.parse(body, 'create');
			const input = await withBodies(await checkedBeside(parsed, fieldErrors(null)));
			return writes.createTemplate({ id: newId(), input, now: clock.now() });
		},
		change: async (id, body, mode) => {
			const parsed = templateFields.parse(body, mode);
			const patch = await withBodies(await checkedBeside(parsed, fieldErrors(id)));
			return writes.patchTemplate({ id, patch, now: clock.now() });
		},
		delete: (id) => writes.deleteTemplate({ id }),
	});
}

async function withBodies<T extends { text_body?: string; html_body?: string }>(input: T): Promise<T> {
	const errors = await bodyErrors(input);
	if (Object.keys(errors).length > 0) throw invalid(errors);
	return input;
}
