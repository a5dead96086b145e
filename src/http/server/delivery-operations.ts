/** The routes of the log of notifications as calls of the `Api`. */
import type { DeliveryFilter } from '../../api/deliveries.js';
import { parseBody, replayBody } from './bodies.js';
import type { Asked, Perform } from './operations.js';
import { readPage } from './page.js';
import type { Query } from './query.js';

/** Part of the one table. */
export const deliveryOperations = {
	'ext.deliveries.page': ({ ext }, { ids, query, call }) => {
		const filter = filterOf(query);
		return readPage(query, (page) => ext.deliveries.page(webhookOf(ids), { ...filter, ...page }, call));
	},
	'ext.deliveries.get': ({ ext }, { ids, uuids, call }) =>
		ext.deliveries.get(webhookOf(ids), uuids['uuid'] ?? '', call),
	'ext.deliveries.replay': async ({ ext }, { ids, body, call }) => {
		const { deliveries, failed, since, all } = parseBody(replayBody, body);
		const what = {
			failed,
			all,
			...(deliveries !== null && { deliveries }),
			...(since !== null && { since }),
		};
		return { replayed: await ext.deliveries.replay(webhookOf(ids), what, call) };
	},
	'ext.deliveries.stopped': async ({ ext }, { call }) => ({ stopped: await ext.deliveries.stopped(call) }),
	'ext.deliveries.secrets': async ({ ext }, { call }) => ({ secrets: await ext.deliveries.secrets(call) }),
	'ext.deliveries.rotateSecret': async ({ ext }, { call }) => ({
		secrets: await ext.deliveries.rotateSecret(call),
	}),
} as const satisfies Record<string, Perform>;

function webhookOf(ids: Asked['ids']): number {
	const id = ids['id'];
	if (id === undefined) throw new Error('the route has no {id}');
	return id;
}

/** Which words are good is the engine's to say. */
function filterOf(query: Query): DeliveryFilter {
	const state = query.filter('state');
	const since = query.filter('since');
	const given = { ...(state !== undefined && { state }), ...(since !== undefined && { since }) };
	return given as DeliveryFilter;
}
