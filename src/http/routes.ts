/**
 * Every operation of the API in HTTP: the one table for client, server and OpenAPI. Service document, "Endpoints";
 * routes below `/ext/` are ours (api-decisions 38).
 */
import { maxAttachedBytes } from '../api/attachments.js';

/** The rights of a token. `admin` includes all others. */
export const scopes = ['read', 'send', 'admin'] as const;
export type Scope = (typeof scopes)[number];

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface Route {
	method: Method;
	/** With a slash at its end; `{list_id}`, `{id}`, `{first}` are integers, `{uuid}` a UUID, `{sha256}` a hash. */
	path: string;
	success: 200 | 201 | 204;
	scope: Scope;
	/** Also needed, for personal data in the answer. */
	alsoScope?: Scope;
	/** Enough by itself instead. */
	orScope?: Scope;
	/** Names of the query parameters that are read; others are ignored. */
	query?: readonly string[];
	/** The size of its body; absent: it has none. */
	body?: BodySize;
	/** Not idempotent, although its method is: no client repeats it automatically. */
	isUnsafe?: true;
	/** A repeat with the same Idempotency-Key has the first answer. */
	isKeyed?: true;
}

/** Octets: of JSON; of the rows of a batch, which are one transaction; of files that go with mails, which are no JSON. */
export const maxBodyBytes = {
	json: 10 * 1024 * 1024,
	batch: 4 * 1024 * 1024,
	file: maxAttachedBytes,
} as const;
export type BodySize = keyof typeof maxBodyBytes;

type More = Omit<Route, 'method' | 'path' | 'scope' | 'success'> & Partial<Pick<Route, 'success'>>;

function get(path: string, scope: Scope, more: More = {}): Route {
	return { method: 'GET', path, scope, success: 200, ...more };
}

function post(path: string, scope: Scope, more: More = {}): Route {
	return { method: 'POST', path, scope, success: 200, ...more };
}

function put(path: string, scope: Scope, more: More = {}): Route {
	return { method: 'PUT', path, scope, success: 200, body: 'json', ...more };
}

function patch(path: string, scope: Scope, more: More = {}): Route {
	return { method: 'PATCH', path, scope, success: 200, body: 'json', ...more };
}

function remove(path: string, scope: Scope): Route {
	return { method: 'DELETE', path, scope, success: 204 };
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
const senders = '/senders/';
const sender = '/senders/{id}/';
const templates = '/ext/templates/';
const template = '/ext/templates/{uuid}/';
const messages = '/ext/messages/';
const message = '/ext/messages/{uuid}/';
const imports = '/ext/imports/';
const importSession = '/ext/imports/{uuid}/';
const erasures = '/ext/erasures/';
/** The wire's word for campaigns (api-decisions 38). */
const campaigns = '/ext/mailings/';
const campaign = '/ext/mailings/{uuid}/';
const suppressions = '/ext/suppressions/';
const suppressionFilters = ['email__icontains', 'email__exact', 'reason', 'source', 'list_id'] as const;
/** The address stands in the query, which is in no log. */
const people = '/ext/people/';
const attachment = '/ext/attachments/{sha256}/';
const deliveries = '/ext/webhooks/{id}/deliveries/';
const secrets = '/ext/webhooks/secret/';

export const routes = {
	'lists.page': get(lists, 'read', { query: paging }),
	'lists.create': post(lists, 'admin', { success: 201, body: 'json' }),
	'lists.get': get(list, 'read'),
	'lists.replace': put(list, 'admin'),
	'lists.patch': patch(list, 'admin'),
	'lists.delete': remove(list, 'admin'),

	'subscribers.page': get(subscribers, 'read', { query: [...subscriberFilters, ...paging] }),
	'subscribers.create': post(subscribers, 'admin', { success: 201, body: 'json' }),
	'subscribers.get': get(subscriber, 'read'),
	'subscribers.replace': put(subscriber, 'admin'),
	'subscribers.patch': patch(subscriber, 'admin'),
	'subscribers.delete': remove(subscriber, 'admin'),

	'fields.page': get(fields, 'read', { query: paging }),
	'fields.create': post(fields, 'admin', { success: 201, body: 'json' }),
	'fields.get': get(field, 'read'),
	'fields.replace': put(field, 'admin'),
	'fields.patch': patch(field, 'admin'),
	'fields.delete': remove(field, 'admin'),

	// A webhook's password is in its answers (api-decisions 18), so reading them takes more than `read`.
	'webhooks.page': get(webhooks, 'admin', { query: paging }),
	'webhooks.create': post(webhooks, 'admin', { success: 201, body: 'json' }),
	'webhooks.get': get(webhook, 'admin'),
	'webhooks.replace': put(webhook, 'admin'),
	'webhooks.patch': patch(webhook, 'admin'),
	'webhooks.delete': remove(webhook, 'admin'),
	'webhooks.test': get(`${webhook}run_test/`, 'admin', { isUnsafe: true }),

	// Not in the document: services of this API have both (api-decisions 48).
	'senders.page': get(senders, 'read', { query: paging }),
	'senders.create': post(senders, 'admin', { success: 201, body: 'json' }),
	'senders.get': get(sender, 'read'),
	'senders.replace': put(sender, 'admin'),
	'senders.patch': patch(sender, 'admin'),
	'senders.delete': remove(sender, 'admin'),
	events: get('/message/events/{uuid}/', 'read'),

	send: post('/message/send/', 'send', { body: 'json', isKeyed: true }),
	report: get('/stat/reports/events-report/', 'read', { query: reportQuery }),

	'ext.templates.page': get(templates, 'read', { query: paging }),
	'ext.templates.create': post(templates, 'admin', { success: 201, body: 'json' }),
	'ext.templates.get': get(template, 'read'),
	'ext.templates.replace': put(template, 'admin'),
	'ext.templates.patch': patch(template, 'admin'),
	'ext.templates.delete': remove(template, 'admin'),

	'ext.messages.page': get(messages, 'read', {
		query: ['status', 'to', 'campaign_unique_id', 'tag', 'since', 'ordering', ...paging],
	}),
	/** Messages by key: `{results, next}`. For reading all of them, where pages would be slow. */
	'ext.messages.slice': get(`${messages}slice/`, 'read', {
		query: ['status', 'to', 'campaign_unique_id', 'tag', 'since', 'ordering', 'cursor', 'limit'],
	}),
	/** The progress of a submission or a campaign: `{messages: {sent: 2, …}, paused: string|null, has_worker: boolean}`. */
	'ext.messages.progress': get(`${messages}progress/`, 'send', { query: ['submission', 'campaign'] }),
	'ext.messages.get': get(message, 'read'),
	/** Answers the changed message; 400 on `state` where its state does not allow it. */
	'ext.messages.cancel': post(`${message}cancel/`, 'send', { alsoScope: 'read' }),
	'ext.messages.retry': post(`${message}retry/`, 'send', { alsoScope: 'read' }),
	'ext.messages.raw': get(`${message}raw/`, 'read'),

	'ext.reports.report': get('/ext/reports/events-report/', 'read', {
		query: [...reportQuery, 'tag', 'human'],
	}),

	'ext.reports.details': get('/ext/reports/details/', 'read', {
		query: ['date_from', 'date_to', 'campaign_unique_id', 'lists'],
	}),
	/** `{results, left_out}`, the most clicked first. */
	'ext.reports.links': get(`${campaign}links/`, 'read'),

	/** Body `{name, email_reason}`, answers `{is_new, list}`: see `ListsPlus.add`. */
	'ext.lists.add': post('/ext/lists/', 'admin', { body: 'json', isKeyed: true }),
	/** What a list has beyond the document: `{id, public_name}`. */
	'ext.lists.get': get('/ext/lists/{list_id}/', 'read'),
	'ext.lists.patch': patch('/ext/lists/{list_id}/', 'admin'),

	/** Body `{patch, set, unset}`: see `SubscribersPlus.merge`. */
	'ext.subscribers.merge': patch('/ext/lists/{list_id}/subscribers/{id}/', 'admin', { isUnsafe: true }),
	/** Body `{subscriber, if_exists}`: see `SubscribersPlus.add`. */
	'ext.subscribers.add': post('/ext/lists/{list_id}/subscribers/', 'admin', { body: 'json' }),
	/** Answers `{"deleted": 12}`. */
	'ext.subscribers.clear': post('/ext/lists/{list_id}/clear/', 'admin'),
	/** Answers `{"count": 12}`. */
	'ext.fields.countUses': get('/ext/fields/{id}/uses/', 'read'),

	/** Subscribers after an id: `{results, next}`. For reading all of them, where pages would be slow. */
	'ext.exports.slice': get('/ext/lists/{list_id}/subscribers/', 'read', {
		query: [...subscriberFilters, 'after', 'limit'],
	}),

	/** Tuples in place of records; `keys` says which values. */
	'ext.tuples.slice': get('/ext/lists/{list_id}/tuples/', 'read', {
		query: [...subscriberFilters, 'keys', 'after', 'limit'],
	}),

	/** Body `{email}`: an address in a path would appear in every log. */
	'ext.erasures.erase': post(erasures, 'admin', { body: 'json' }),
	/** Body `{email}`. */
	'ext.erasures.lift': post(`${erasures}lift/`, 'admin', { success: 204, body: 'json' }),

	/** Body `{key, list_id, on_conflict, reactivate}`; the same key reopens. */
	'ext.imports.open': post(imports, 'admin', { body: 'json' }),
	/** Body `{columns, cells}`. */
	'ext.imports.put': put(`${importSession}batches/{first}/`, 'admin', { body: 'batch' }),
	'ext.imports.finish': post(`${importSession}finish/`, 'admin'),

	/** Body `{key, …CampaignSpec}`; the same key reopens, and without one a new campaign is named. */
	'ext.campaigns.open': post(campaigns, 'send', { body: 'json' }),
	/** Body as of opening one; refused as that would be, and nothing is opened. */
	'ext.campaigns.check': post(`${campaigns}check/`, 'send', { success: 204, body: 'json' }),
	/** Body `{recipients: [{to, context}]}`. */
	'ext.campaigns.put': put(`${campaign}batches/{first}/`, 'send', { body: 'batch' }),
	/** Body `{requests: [{request, line}]}`. */
	'ext.campaigns.putRequests': put(`${campaign}requests/{first}/`, 'send', { body: 'batch' }),
	/** Body `{position}`. */
	'ext.campaigns.complete': post(`${campaign}complete/`, 'send', { success: 204, body: 'json' }),
	/** `for_ms`: the answer comes after so many milliseconds, with `is_partial` where the list goes on. */
	'ext.campaigns.addList': post(`${campaign}lists/{list_id}/`, 'send', {
		alsoScope: 'read',
		query: ['for_ms'],
	}),
	/** Body `{expect_count}`. */
	'ext.campaigns.release': post(`${campaign}release/`, 'send', { success: 204, body: 'json' }),
	/** `forget`: one that was never released is deleted; one that was is left as it is, 409. */
	'ext.campaigns.cancel': post(`${campaign}cancel/`, 'send', { success: 204, query: ['forget'] }),
	'ext.campaigns.page': get(campaigns, 'send', {
		query: ['key', 'id', 'state', 'since', 'ordering', ...paging],
		orScope: 'read',
	}),
	/** `{results, next}`; `next` is the `after` of the rest. */
	'ext.campaigns.results': get(`${campaign}results/`, 'send', {
		query: ['after', 'limit', 'only'],
		orScope: 'read',
	}),
	'ext.campaigns.status': get(campaign, 'send', { orScope: 'read' }),

	/** Body as of opening a campaign; writes nothing. */
	'ext.audiences.foresee': post(`${campaigns}foresee/{list_id}/`, 'send', {
		body: 'json',
		query: ['after'],
		alsoScope: 'read',
	}),
	/** Body `{at, in_ms, window}`; writes nothing. */
	'ext.audiences.plan': post(`${campaigns}plan/`, 'send', { body: 'json' }),
	/** `{results, next}`; `next` is the `after` of the rest. */
	'ext.audiences.leftOut': get(`${campaign}left-out/`, 'send', {
		query: ['after', 'limit'],
		alsoScope: 'read',
	}),

	/** `{sha256, size}`; 404 for bytes that are not there or about to be deleted. */
	'ext.attachments.find': get(attachment, 'send'),
	/** The body is the file itself; 400 on `sha256` for other bytes. */
	'ext.attachments.put': put(attachment, 'send', { body: 'file' }),

	'ext.suppressions.page': get(suppressions, 'read', { query: [...suppressionFilters, ...paging] }),
	/** `{results, next}`; `next` is the `cursor` of the rest. For reading all of them, where pages would be slow. */
	'ext.suppressions.slice': get(`${suppressions}slices/`, 'read', {
		query: [...suppressionFilters, 'cursor', 'limit'],
	}),
	/** Body `{email, reason, list_id, expires_at}`. */
	'ext.suppressions.create': post(suppressions, 'admin', { success: 201, body: 'json' }),
	/** Body `{rows: […]}`, at most 5,000. PUT: the same rows again change nothing. */
	'ext.suppressions.put': put(suppressions, 'admin', { body: 'batch' }),
	/** Body as of a PUT; nothing is written. */
	'ext.suppressions.check': post(`${suppressions}check/`, 'read', { body: 'batch' }),
	/** Body `{email}`; with `reason` and `list_id` only suppressions of that reason and list. */
	'ext.suppressions.remove': post(`${suppressions}remove/`, 'admin', { body: 'json' }),

	/** All that is stored about an address, without its messages. */
	'ext.people.get': get(people, 'read', { query: ['email'] }),
	/** `{results, next}`, the newest first; `next` is the `before` of the rest. */
	'ext.people.messages': get(`${people}messages/`, 'read', { query: ['email', 'since', 'before', 'limit'] }),

	'ext.deliveries.page': get(deliveries, 'admin', { query: ['state', 'since', 'ordering', ...paging] }),
	/** Body `{deliveries}`, `{failed, since}` or `{all}`; answers `{"replayed": 12}`. */
	'ext.deliveries.replay': post(`${deliveries}replay/`, 'admin', { body: 'json' }),
	'ext.deliveries.get': get(`${deliveries}{uuid}/`, 'admin'),
	/** Answers `{"stopped": […]}`, by id. */
	'ext.deliveries.stopped': get('/ext/webhooks/stopped/', 'admin'),
	/** Answers `{"secrets": […]}`, newest first. */
	'ext.deliveries.secrets': get(secrets, 'admin'),
	/** Creates a new one; answers as the GET does. */
	'ext.deliveries.rotateSecret': post(secrets, 'admin'),
} satisfies Record<string, Route>;

export type Operation = keyof typeof routes;

/** The paths of any deployment of ours that need no token. */
export const openPaths = {
	root: '/',
	health: '/healthz',
	ready: '/readyz',
	openapi: '/openapi.json',
} as const;
/** For Prometheus; needs a token with `read`, as `X-Secure-Token` or, Prometheus's own way, `Authorization: Bearer`. */
export const metricsPath = '/metrics';

/** The scopes that a token needs: all of one of these sets. */
export function scopesOf({
	scope,
	alsoScope,
	orScope,
}: Pick<Route, 'scope' | 'alsoScope' | 'orScope'>): readonly (readonly Scope[])[] {
	const needed = alsoScope === undefined ? [scope] : [scope, alsoScope];
	return orScope === undefined ? [needed] : [needed, [orScope]];
}

/** `{list_id}` and the like replaced by their values, percent-encoded. */
export function pathOf(operation: Operation, values: Readonly<Record<string, string | number>> = {}): string {
	return routes[operation].path.replace(/\{(\w+)\}/g, (_, name: string) =>
		encodeURIComponent(String(values[name] ?? '')),
	);
}
