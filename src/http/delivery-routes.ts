/** The log of notifications as HTTP has it, and what signs them (api-decisions 38). */
import type { Route } from './routes.js';

const deliveries = '/ext/webhooks/{id}/deliveries/';
const secret = '/ext/webhooks/secret/';

/** Part of the one table. A body of a notification tells of people, a secret lets anybody write one: both take `admin`. */
export const deliveryRoutes = {
	'ext.deliveries.page': {
		method: 'GET',
		path: deliveries,
		success: 200,
		scope: 'admin',
		query: ['state', 'since', 'page', 'page_size'],
		extension: 'deliveries',
	},
	/** Body `{deliveries}`, `{failed, since}` or `{all}`; answers `{"replayed": 12}`. */
	'ext.deliveries.replay': {
		method: 'POST',
		path: '/ext/webhooks/{id}/deliveries/replay/',
		success: 200,
		scope: 'admin',
		hasBody: true,
		extension: 'deliveries',
	},
	'ext.deliveries.get': {
		method: 'GET',
		path: '/ext/webhooks/{id}/deliveries/{uuid}/',
		success: 200,
		scope: 'admin',
		extension: 'deliveries',
	},
	/** Answers `{"stopped": […]}`, by id. */
	'ext.deliveries.stopped': {
		method: 'GET',
		path: '/ext/webhooks/stopped/',
		success: 200,
		scope: 'admin',
		extension: 'deliveries',
	},
	/** Answers `{"secrets": […]}`, newest first. */
	'ext.deliveries.secrets': {
		method: 'GET',
		path: secret,
		success: 200,
		scope: 'admin',
		extension: 'deliveries',
	},
	/** Makes a new one; answers as the GET does. */
	'ext.deliveries.rotateSecret': {
		method: 'POST',
		path: secret,
		success: 200,
		scope: 'admin',
		extension: 'deliveries',
	},
} as const satisfies Record<string, Route>;
