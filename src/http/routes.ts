/**
 * Every operation of the API as HTTP has it: the one table that client, server and OpenAPI read. Service document,
 * "Endpoints"; what is below `/ext/` is ours (api-decisions 38).
 */
import type { Extensions } from '../api/capabilities.js';
import { deliveryRoutes } from './delivery-routes.js';
import { mailingRoutes } from './mailing-routes.js';
import { suppressionRoutes } from './suppression-routes.js';

/** What a token must be allowed to do. `admin` allows everything. */
export const scopes = ['read', 'send', 'admin'] as const;
export type Scope = (typeof scopes)[number];

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface Route {
	method: Method;
	/** With a slash at its end; `{list_id}`, `{id}`, `{first}` are integers, `{uuid}` a UUID. */
	path: string;
	success: 200 | 201 | 204;
	scope: Scope;
	/** Needed besides: what it answers tells of people. */
	alsoScope?: Scope;
	/** Names of query parameters that are looked at; others are ignored. */
	query?: readonly string[];
	/** Has a JSON body. */
	hasBody?: true;
	/** Doing it twice is not doing it once, although its method says so: no client repeats it by itself. */
	isUnsafe?: true;
	/** The extension it belongs to; absent: the service document. */
	extension?: keyof Extensions;
}

const paging = ['page', 'page_size'] as const;
const subscriberFilters = ['email__icontains', 'email__exact', 'is_active'] as const;
const reportQuery = ['date_from', 'date_to', 'campaign_unique_id', 'event_types'] as const;

const lists = '/sub/lists/';
const list = '/sub/lists/{list_id}/';
const subscribers = '/sub/lists/{list_id}/subscribers/';
const subscriber = '/sub/lists/{list_id}/subscribers/{id}/';
const fields = '/sub/fields/';
const field = '/sub/fields/{id}/';
const webhooks = '/webhooks/';
const webhook = '/webhooks/{id}/';
const templates = '/ext/templates/';
const template = '/ext/templates/{uuid}/';
const senders = '/ext/senders/';
const messages = '/ext/messages/';
const message = '/ext/messages/{uuid}/';
const imports = '/ext/imports/';
const erasures = '/ext/erasures/';

export const routes = {
	'lists.page': { method: 'GET', path: lists, success: 200, scope: 'read', query: paging },
	'lists.create': { method: 'POST', path: lists, success: 201, scope: 'admin', hasBody: true },
	'lists.get': { method: 'GET', path: list, success: 200, scope: 'read' },
	'lists.replace': { method: 'PUT', path: list, success: 200, scope: 'admin', hasBody: true },
	'lists.patch': { method: 'PATCH', path: list, success: 200, scope: 'admin', hasBody: true },
	'lists.delete': { method: 'DELETE', path: list, success: 204, scope: 'admin' },

	'subscribers.page': {
		method: 'GET',
		path: subscribers,
		success: 200,
		scope: 'read',
		query: [...subscriberFilters, ...paging],
	},
	'subscribers.create': { method: 'POST', path: subscribers, success: 201, scope: 'admin', hasBody: true },
	'subscribers.get': { method: 'GET', path: subscriber, success: 200, scope: 'read' },
	'subscribers.replace': { method: 'PUT', path: subscriber, success: 200, scope: 'admin', hasBody: true },
	'subscribers.patch': { method: 'PATCH', path: subscriber, success: 200, scope: 'admin', hasBody: true },
	'subscribers.delete': { method: 'DELETE', path: subscriber, success: 204, scope: 'admin' },

	'fields.page': { method: 'GET', path: fields, success: 200, scope: 'read', query: paging },
	'fields.create': { method: 'POST', path: fields, success: 201, scope: 'admin', hasBody: true },
	'fields.get': { method: 'GET', path: field, success: 200, scope: 'read' },
	'fields.replace': { method: 'PUT', path: field, success: 200, scope: 'admin', hasBody: true },
	'fields.patch': { method: 'PATCH', path: field, success: 200, scope: 'admin', hasBody: true },
	'fields.delete': { method: 'DELETE', path: field, success: 204, scope: 'admin' },

	// A webhook's password is in its answers (api-decisions 18), so reading them takes more than `read`.
	'webhooks.page': { method: 'GET', path: webhooks, success: 200, scope: 'admin', query: paging },
	'webhooks.create': { method: 'POST', path: webhooks, success: 201, scope: 'admin', hasBody: true },
	'webhooks.get': { method: 'GET', path: webhook, success: 200, scope: 'admin' },
	'webhooks.replace': { method: 'PUT', path: webhook, success: 200, scope: 'admin', hasBody: true },
	'webhooks.patch': { method: 'PATCH', path: webhook, success: 200, scope: 'admin', hasBody: true },
	'webhooks.delete': { method: 'DELETE', path: webhook, success: 204, scope: 'admin' },
	'webhooks.test': {
		method: 'GET',
		path: '/webhooks/{id}/run_test/',
		success: 200,
		scope: 'admin',
		isUnsafe: true,
	},

	send: { method: 'POST', path: '/message/send/', success: 200, scope: 'send', hasBody: true },
	report: {
		method: 'GET',
		path: '/stat/reports/events-report/',
		success: 200,
		scope: 'read',
		query: reportQuery,
	},

	'ext.templates.page': {
		method: 'GET',
		path: templates,
		success: 200,
		scope: 'read',
		query: paging,
		extension: 'templates',
	},
	'ext.templates.create': {
		method: 'POST',
		path: templates,
		success: 201,
		scope: 'admin',
		hasBody: true,
		extension: 'templates',
	},
	'ext.templates.get': {
		method: 'GET',
		path: template,
		success: 200,
		scope: 'read',
		extension: 'templates',
	},
	'ext.templates.patch': {
		method: 'PATCH',
		path: template,
		success: 200,
		scope: 'admin',
		hasBody: true,
		extension: 'templates',
	},
	'ext.templates.delete': {
		method: 'DELETE',
		path: template,
		success: 204,
		scope: 'admin',
		extension: 'templates',
	},

	'ext.senders.page': {
		method: 'GET',
		path: senders,
		success: 200,
		scope: 'read',
		query: paging,
		extension: 'senders',
	},
	'ext.senders.create': {
		method: 'POST',
		path: senders,
		success: 201,
		scope: 'admin',
		hasBody: true,
		extension: 'senders',
	},
	'ext.senders.delete': {
		method: 'DELETE',
		path: '/ext/senders/{id}/',
		success: 204,
		scope: 'admin',
		extension: 'senders',
	},

	'ext.messages.page': {
		method: 'GET',
		path: messages,
		success: 200,
		scope: 'read',
		query: ['status', 'to', 'campaign_unique_id', 'since', ...paging],
		extension: 'messages',
	},
	/** How far a submission or a mailing is: `{messages: {sent: 2, …}, paused: string|null}`. */
	'ext.messages.progress': {
		method: 'GET',
		path: '/ext/messages/progress/',
		success: 200,
		scope: 'send',
		query: ['submission', 'mailing'],
		extension: 'messages',
	},
	'ext.messages.get': { method: 'GET', path: message, success: 200, scope: 'read', extension: 'messages' },
	/** Answers the message as it is then; 400 on `state` where its state does not allow it. */
	'ext.messages.cancel': {
		method: 'POST',
		path: '/ext/messages/{uuid}/cancel/',
		success: 200,
		scope: 'send',
		alsoScope: 'read',
		extension: 'messages',
	},
	'ext.messages.retry': {
		method: 'POST',
		path: '/ext/messages/{uuid}/retry/',
		success: 200,
		scope: 'send',
		alsoScope: 'read',
		extension: 'messages',
	},
	'ext.messages.raw': {
		method: 'GET',
		path: '/ext/messages/{uuid}/raw/',
		success: 200,
		scope: 'read',
		extension: 'messages',
	},

	'ext.reports.report': {
		method: 'GET',
		path: '/ext/reports/events-report/',
		success: 200,
		scope: 'read',
		query: [...reportQuery, 'tag', 'human'],
		extension: 'reports',
	},

	/** Body `{patch, set, unset}`: see `SubscribersPlus.merge`. */
	'ext.subscribers.merge': {
		method: 'PATCH',
		path: '/ext/lists/{list_id}/subscribers/{id}/',
		success: 200,
		scope: 'admin',
		hasBody: true,
		isUnsafe: true,
		extension: 'subscribers',
	},
	/** Answers `{"deleted": 12}`. */
	'ext.subscribers.clear': {
		method: 'POST',
		path: '/ext/lists/{list_id}/clear/',
		success: 200,
		scope: 'admin',
		extension: 'subscribers',
	},
	/** Answers `{"count": 12}`. */
	'ext.fields.countUses': {
		method: 'GET',
		path: '/ext/fields/{id}/uses/',
		success: 200,
		scope: 'read',
		extension: 'fields',
	},

	/** Subscribers behind an id: `{results, next}`. For reading all of them, where pages would be slow. */
	'ext.exports.slice': {
		method: 'GET',
		path: '/ext/lists/{list_id}/subscribers/',
		success: 200,
		scope: 'read',
		query: [...subscriberFilters, 'after', 'limit'],
		extension: 'exports',
	},

	/** Body `{email}`: an address in a path would stand in every log. */
	'ext.erasures.erase': {
		method: 'POST',
		path: erasures,
		success: 200,
		scope: 'admin',
		hasBody: true,
		extension: 'erasures',
	},
	/** Body `{email}`. */
	'ext.erasures.lift': {
		method: 'POST',
		path: '/ext/erasures/lift/',
		success: 204,
		scope: 'admin',
		hasBody: true,
		extension: 'erasures',
	},

	/** Body `{key, list_id, on_conflict, reactivate}`; the same key reopens. */
	'ext.imports.open': {
		method: 'POST',
		path: imports,
		success: 200,
		scope: 'admin',
		hasBody: true,
		extension: 'imports',
	},
	/** Body `{columns, cells}`. */
	'ext.imports.put': {
		method: 'PUT',
		path: '/ext/imports/{uuid}/batches/{first}/',
		success: 200,
		scope: 'admin',
		hasBody: true,
		extension: 'imports',
	},
	'ext.imports.finish': {
		method: 'POST',
		path: '/ext/imports/{uuid}/finish/',
		success: 200,
		scope: 'admin',
		extension: 'imports',
	},

	...mailingRoutes,
	...suppressionRoutes,
	...deliveryRoutes,
} as const satisfies Record<string, Route>;

export type Operation = keyof typeof routes;

/** What can be asked of any deployment of ours without a token. */
export const openPaths = {
	root: '/',
	health: '/healthz',
	ready: '/readyz',
	openapi: '/openapi.json',
} as const;
/** Prometheus; wants a token with `read`, as `X-Secure-Token` or, Prometheus's own way, `Authorization: Bearer`. */
export const metricsPath = '/metrics';

/** Octets of a request body; a batch below `/ext/` is smaller, for it is one transaction. */
export const maxBodyBytes = 10 * 1024 * 1024;
export const maxBatchBytes = 4 * 1024 * 1024;

/** What a token must hold, all of it. */
export function scopesOf({ scope, alsoScope }: Route): readonly Scope[] {
	return alsoScope === undefined ? [scope] : [scope, alsoScope];
}

/** `{list_id}` and the like replaced by their values, percent-encoded. */
export function pathOf(operation: Operation, values: Readonly<Record<string, string | number>> = {}): string {
	return routes[operation].path.replace(/\{(\w+)\}/g, (_, name: string) =>
		encodeURIComponent(String(values[name] ?? '')),
	);
}
