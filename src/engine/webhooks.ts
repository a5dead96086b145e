/** Webhooks as records; `src/delivery` makes their deliveries. */
import type { Webhooks } from '../api/api.js';
import { type FieldErrors, invalid } from '../api/errors.js';
import { webhookFields } from '../api/inputs.js';
import { refusal } from '../api/refusals.js';
import type { Parsed } from '../api/schema.js';
import { checkedBeside, deleted, type EngineContext, found, written } from './context.js';
import { readPage } from './pages.js';

/** Webhooks of the database. */
export function createWebhooks(context: EngineContext): Webhooks {
	const { store, clock, ports } = context;
	const { reads, writes } = store;
	const fieldErrors = async ({ url }: { url?: string | undefined }): Promise<FieldErrors> => {
		const reason = url === undefined ? null : await ports.checkTarget(url);
		return reason === null ? {} : { url: [refusal(reason)] };
	};
	const checkedTarget = async <T extends { url?: string }>(parsed: Parsed<T>): Promise<T> => {
		const input = await checkedBeside(parsed, fieldErrors);
		const errors = await fieldErrors(input);
		if (Object.keys(errors).length > 0) throw invalid(errors);
		return input;
	};
	const change = async (id: number, input: unknown, mode: 'replace' | 'patch') => {
		found(await reads.getWebhook({ id }));
		const patch = await checkedTarget(webhookFields.parse(input, mode));
		return written(await writes.patchWebhook({ id, patch }));
	};
	return {
		page: (request) => readPage(context, request, { path: '/webhooks/' }, (page) => reads.pageWebhooks(page)),
		get: async (id) => found(await reads.getWebhook({ id })),
		create: async (body) => {
			const input = await checkedTarget(webhookFields.parse(body, 'create'));
			return written(await writes.createWebhook({ input, now: clock.now() }));
		},
		replace: (id, input) => change(id, input, 'replace'),
		patch: (id, input) => change(id, input, 'patch'),
		delete: async (id) => deleted(await writes.deleteWebhook({ id })),
		test: async (id) => ports.notifyTest(found(await reads.getWebhook({ id }))),
	};
}
