/** Mailings as HTTP has them: sessions of numbered batches, and what became of them (api-decisions 38). */
import type { Route } from './routes.js';

const mailings = '/ext/mailings/';
const mailing = '/ext/mailings/{uuid}/';

/** Part of the one table. */
export const mailingRoutes = {
	/** Body `{key, …MailingSpec}`; the same key reopens. */
	'ext.mailings.open': {
		method: 'POST',
		path: mailings,
		success: 200,
		scope: 'send',
		hasBody: true,
		extension: 'mailings',
	},
	/** Body `{recipients: [{to, context}]}`. */
	'ext.mailings.put': {
		method: 'PUT',
		path: '/ext/mailings/{uuid}/batches/{first}/',
		success: 200,
		scope: 'send',
		hasBody: true,
		extension: 'mailings',
	},
	/** Body `{requests: [{request, line}]}`. */
	'ext.mailings.putRequests': {
		method: 'PUT',
		path: '/ext/mailings/{uuid}/requests/{first}/',
		success: 200,
		scope: 'send',
		hasBody: true,
		extension: 'mailings',
	},
	/** Body `{position}`. */
	'ext.mailings.complete': {
		method: 'POST',
		path: '/ext/mailings/{uuid}/complete/',
		success: 204,
		scope: 'send',
		hasBody: true,
		extension: 'mailings',
	},
	'ext.mailings.addList': {
		method: 'POST',
		path: '/ext/mailings/{uuid}/lists/{list_id}/',
		success: 200,
		scope: 'send',
		alsoScope: 'read',
		extension: 'mailings',
	},
	/** Body `{expect_count}`. */
	'ext.mailings.release': {
		method: 'POST',
		path: '/ext/mailings/{uuid}/release/',
		success: 204,
		scope: 'send',
		hasBody: true,
		extension: 'mailings',
	},
	'ext.mailings.cancel': {
		method: 'POST',
		path: '/ext/mailings/{uuid}/cancel/',
		success: 204,
		scope: 'send',
		extension: 'mailings',
	},
	'ext.mailings.page': {
		method: 'GET',
		path: mailings,
		success: 200,
		scope: 'send',
		query: ['key', 'page', 'page_size'],
		extension: 'mailings',
	},
	/** `{results, next}`; `next` is the `after` of what follows. */
	'ext.mailings.results': {
		method: 'GET',
		path: '/ext/mailings/{uuid}/results/',
		success: 200,
		scope: 'send',
		query: ['after', 'limit', 'only'],
		extension: 'mailings',
	},
	'ext.mailings.status': {
		method: 'GET',
		path: mailing,
		success: 200,
		scope: 'send',
		extension: 'mailings',
	},
} as const satisfies Record<string, Route>;
