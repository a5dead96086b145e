/** The log of notifications of a deployment of ours. */
import type { Deliveries, SigningSecret, StoppedWebhook } from '../../api/deliveries.js';
import { type Check, every, listOf, pageOf, record, within } from './decode.js';
import type { AskFor } from './extensions.js';
import type { Ask } from './line.js';
import { pageQuery } from './resources.js';

const delivery: Check = record({ id: 'text', state: 'text', attempts: 'count' });
const stopped: Check = within(
	'stopped',
	listOf(record({ webhook_id: 'id', date_stopped: 'text', waiting: 'count' })),
);
const secrets: Check = within('secrets', listOf(record({ secret: 'text' })));

/** The extension over its routes. */
export function deliveries(ask: AskFor): Deliveries {
	const listed = async (what: Ask) => (await ask<{ secrets: SigningSecret[] }>(what, secrets)).secrets;
	return {
		page: (id, request, call) =>
			ask(
				{ operation: 'ext.deliveries.page', values: { id }, query: pageQuery(request), call },
				pageOf(delivery),
			),
		get: (id, uuid, call) =>
			ask(
				{ operation: 'ext.deliveries.get', values: { id, uuid }, call },
				every(delivery, record({ payload: 'text', delivery_attempts: 'array' })),
			),
		replay: async (id, body, call) => {
			const what: Ask = { operation: 'ext.deliveries.replay', values: { id }, body, call };
			return (await ask<{ replayed: number }>(what, record({ replayed: 'count' }))).replayed;
		},
		stopped: async (call) => {
			const what: Ask = { operation: 'ext.deliveries.stopped', call };
			return (await ask<{ stopped: StoppedWebhook[] }>(what, stopped)).stopped;
		},
		secrets: (call) => listed({ operation: 'ext.deliveries.secrets', call }),
		rotateSecret: (call) => listed({ operation: 'ext.deliveries.rotateSecret', call }),
	};
}
