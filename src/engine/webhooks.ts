/** HTTP notifications as records; delivering them is not the engine's business. */
import type { Webhooks } from '../api/api.js';
import { invalid } from '../api/errors.js';
import { webhookFields } from '../api/webhooks.js';
import { checked, deleted, type EngineContext, found, written } from './context.js';
import { readPage } from './pages.js';

/** HTTP notifications of the database. */
export function createWebhooks(context: EngineContext): Webhooks {
	const { store, clock, ports } = context;
	const { reads, writes } = store;
	const assertTarget = async (url: string | undefined) => {
		const reason = url === undefined ? null : await ports.checkTarget(url);
		if (reason !== null) throw invalid({ url: [{ code: 'invalid', message: reason }] });
	};
	const change = async (id: number, input: unknown, mode: 'replace' | 'patch') => {
		found(await reads.getWebhook({ id }));
		const patch = checked(webhookFields.parse(input, mode));
		await assertTarget(patch.url);
		return written(await writes.patchWebhook({ id, patch }));
	};
	return {
		page: (request) => readPage(context, request, { path: '/webhooks/' }, (page) => reads.pageWebhooks(page)),
		get: async (id) => found(await reads.getWebhook({ id })),
		create: async (body) => {
			const value = checked(webhookFields.parse(body, 'create'));
			await assertTarget(value.url);
			const input = value;
			return written(await writes.createWebhook({ input, now: clock.now() }));
		},
		replace: (id, input) => change(id, input, 'replace'),
		patch: (id, input) => change(id, input, 'patch'),
		delete: async (id) => deleted(await writes.deleteWebhook({ id })),
		test: async (id) => ports.notifyTest(found(await reads.getWebhook({ id }))),
	};
}
