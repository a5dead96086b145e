import type { Templates } from '../api/capabilities.js';
import { invalid } from '../api/errors.js';
import { templateFields } from '../api/inputs.js';
import type { Uuid } from '../api/records.js';
import { bodyErrors } from './contents.js';
import { checkedBeside, deleted, type EngineContext, found, written } from './context.js';
import { readPage } from './pages.js';

export function createTemplates(context: EngineContext): Templates {
	const { store, clock, newId } = context;
	const { reads, writes } = store;
	const fieldErrors =
		(id: Uuid | null) =>
		({ name }: { name?: string }) =>
			reads.fieldErrors({ kind: 'template', id, ...(name !== undefined && { name }) });
	const change = async (id: Uuid, body: unknown, mode: 'replace' | 'patch') => {
		found(await reads.getTemplate({ id }));
		const patch = await withBodies(await checkedBeside(templateFields.parse(body, mode), fieldErrors(id)));
		return written(await writes.patchTemplate({ id, patch, now: clock.now() }));
	};
	return {
		page: (request) =>
			readPage(context, request, { path: '/ext/templates/' }, (page) => reads.pageTemplates(page)),
		get: async (id) => found(await reads.getTemplate({ id })),
		create: async (body) => {
			const input = await withBodies(
				await checkedBeside(templateFields.parse(body, 'create'), fieldErrors(null)),
			);
			return written(await writes.createTemplate({ id: newId(), input, now: clock.now() }));
		},
		replace: (id, body) => change(id, body, 'replace'),
		patch: (id, body) => change(id, body, 'patch'),
		delete: async (id) => deleted(await writes.deleteTemplate({ id })),
	};
}

async function withBodies<T extends { text_body?: string; html_body?: string }>(input: T): Promise<T> {
	const errors = await bodyErrors(input);
	if (Object.keys(errors).length > 0) throw invalid(errors);
	return input;
}
