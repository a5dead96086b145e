/** Message templates: named bodies; the name is the subject of what is sent with them. */
import type { Templates } from '../api/capabilities.js';
import { templateFields } from '../api/templates.js';
import { checked, deleted, type EngineContext, found, written } from './context.js';
import { readPage } from './pages.js';

/** Message templates of the database. */
export function createTemplates(context: EngineContext): Templates {
	const { store, clock, newId } = context;
	const { reads, writes } = store;
	return {
		page: (request) =>
			readPage(context, request, { path: '/ext/templates/' }, (page) => reads.pageTemplates(page)),
		get: async (id) => found(await reads.getTemplate({ id })),
		create: async (body) => {
			const input = checked(templateFields.parse(body, 'create'));
			return written(await writes.createTemplate({ id: newId(), input, now: clock.now() }));
		},
		patch: async (id, body) => {
			found(await reads.getTemplate({ id }));
			const patch = checked(templateFields.parse(body, 'patch'));
			return written(await writes.patchTemplate({ id, patch, now: clock.now() }));
		},
		delete: async (id) => deleted(await writes.deleteTemplate({ id })),
	};
}
