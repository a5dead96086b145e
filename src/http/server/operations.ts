/** Every route as one call of the `Api`: decode, one call, encode. Which values are good is the Api's business. */
import type { Api, Call, Crud } from '../../api/api.js';
import type { Extensions, MessageFilter, MessageScope } from '../../api/capabilities.js';
import { invalid } from '../../api/errors.js';
import type { ResultsRequest } from '../../api/mailings.js';
import type { ReportQuery } from '../../api/records.js';
import type { Operation } from '../routes.js';
import {
	completeBody,
	erasureBody,
	importBatch,
	importSpec,
	jobKey,
	mergeBody,
	parseBody,
	recipientBatch,
	releaseBody,
	requestBatch,
} from './bodies.js';
import { deliveryOperations } from './delivery-operations.js';
import { readPage } from './page.js';
import type { Query } from './query.js';
import { suppressionOperations } from './suppression-operations.js';

/** What a request asks for, as far as HTTP understands it. `body` is parsed JSON of any shape. */
export interface Asked {
	/** Integers of the path by name; a part that is no integer never comes here. */
	ids: Readonly<Record<string, number>>;
	/** UUIDs of the path by name. */
	uuids: Readonly<Record<string, string>>;
	query: Query;
	body: unknown;
	call: Call;
}

/** The Api with every extension, as only the engine has it. */
export interface Served {
	api: Api;
	ext: Extensions;
}

/** What is answered; `undefined` = no body. */
export type Perform = (served: Served, asked: Asked) => Promise<unknown>;

export const operations: Readonly<Record<Operation, Perform>> = {
	...crud('lists', 'list_id', ({ api }) => api.lists),
	...crud('subscribers', 'id', ({ api }, { ids }) => api.subscribers(id(ids, 'list_id'))),
	...crud('fields', 'id', ({ api }) => api.fields),
	...crud('webhooks', 'id', ({ api }) => api.webhooks),
	'subscribers.page': ({ api }, { ids, query, call }) => {
		const filter = subscriberFilter(query);
		const subscribers = api.subscribers(id(ids, 'list_id'));
		return readPage(query, (page) => subscribers.page({ ...filter, ...page }, call));
	},
	'webhooks.test': ({ api }, { ids, call }) => api.webhooks.test(id(ids, 'id'), call),
	send: ({ api }, { body, call }) => api.send(unchecked(body), call),
	report: async ({ api }, { query, call }) => ({
		results: await api.report(unchecked(query.reportQuery()), call),
	}),

	'ext.templates.page': ({ ext }, { query, call }) =>
		readPage(query, (page) => ext.templates.page(page, call)),
	'ext.templates.create': ({ ext }, { body, call }) => ext.templates.create(unchecked(body), call),
	'ext.templates.get': ({ ext }, { uuids, call }) => ext.templates.get(uuid(uuids), call),
	'ext.templates.patch': ({ ext }, { uuids, body, call }) =>
		ext.templates.patch(uuid(uuids), unchecked(body), call),
	'ext.templates.delete': ({ ext }, { uuids, call }) => ext.templates.delete(uuid(uuids), call),
	'ext.senders.page': ({ ext }, { query, call }) => readPage(query, (page) => ext.senders.page(page, call)),
	'ext.senders.create': ({ ext }, { body, call }) => ext.senders.create(unchecked(body), call),
	'ext.senders.delete': ({ ext }, { ids, call }) => ext.senders.delete(id(ids, 'id'), call),
	'ext.messages.page': ({ ext }, { query, call }) => {
		const filter = messageFilter(query);
		return readPage(query, (page) => ext.messages.page({ ...filter, ...page }, call));
	},
	'ext.messages.progress': ({ ext }, { query, call }) => ext.messages.progress(scopeOf(query), call),
	'ext.messages.get': ({ ext }, { uuids, call }) => ext.messages.get(uuid(uuids), call),
	'ext.messages.cancel': ({ ext }, { uuids, call }) => ext.messages.cancel(uuid(uuids), call),
	'ext.messages.retry': ({ ext }, { uuids, call }) => ext.messages.retry(uuid(uuids), call),
	'ext.messages.raw': ({ ext }, { uuids, call }) => ext.messages.raw(uuid(uuids), call),
	'ext.reports.report': async ({ ext }, { query, call }) => {
		const tag = query.filter('tag');
		const human = query.boolean('human');
		const narrowed = { ...(tag !== undefined && { tag }), ...(human !== undefined && { human }) };
		const documented = unchecked<ReportQuery>(query.reportQuery());
		return { results: await ext.reports.report({ ...documented, ...narrowed }, call) };
	},
	'ext.subscribers.merge': ({ ext }, { ids, body, call }) =>
		ext.subscribers.merge(id(ids, 'list_id'), id(ids, 'id'), unchecked(parseBody(mergeBody, body)), call),
	'ext.subscribers.clear': async ({ ext }, { ids, call }) => ({
		deleted: await ext.subscribers.clear(id(ids, 'list_id'), call),
	}),
	'ext.fields.countUses': async ({ ext }, { ids, call }) => ({
		count: await ext.fields.countUses(id(ids, 'id'), call),
	}),
	'ext.exports.slice': ({ ext }, { ids, query, call }) =>
		ext.exports.slice(
			id(ids, 'list_id'),
			{
				...subscriberFilter(query),
				after: query.integer('after') ?? 0,
				limit: query.integer('limit') ?? 1000,
			},
			call,
		),
	'ext.erasures.erase': ({ ext }, { body, call }) =>
		ext.erasures.erase(parseBody(erasureBody, body).email, call),
	'ext.erasures.lift': ({ ext }, { body, call }) =>
		ext.erasures.lift(parseBody(erasureBody, body).email, call),
	'ext.imports.open': ({ ext }, { body, call }) => {
		const { key, ...spec } = parseBody(importSpec, body);
		return ext.imports.open(key, spec, call);
	},
	'ext.imports.put': ({ ext }, { uuids, ids, body, call }) =>
		ext.imports.put(uuid(uuids), { ...parseBody(importBatch, body), first: id(ids, 'first') }, call),
	'ext.imports.finish': ({ ext }, { uuids, call }) => ext.imports.finish(uuid(uuids), call),
	'ext.mailings.open': ({ ext }, { body, call }) => {
		const { key } = parseBody(jobKey, body);
		const { key: _, ...spec } = unchecked<Record<string, unknown>>(body);
		return ext.mailings.open(key, unchecked(spec), call);
	},
	'ext.mailings.put': ({ ext }, { uuids, ids, body, call }) =>
		ext.mailings.put(uuid(uuids), { ...parseBody(recipientBatch, body), first: id(ids, 'first') }, call),
	'ext.mailings.putRequests': ({ ext }, { uuids, ids, body, call }) =>
		ext.mailings.putRequests(
			uuid(uuids),
			{ ...parseBody(requestBatch, body), first: id(ids, 'first') },
			call,
		),
	'ext.mailings.complete': ({ ext }, { uuids, body, call }) =>
		ext.mailings.complete(uuid(uuids), parseBody(completeBody, body), call),
	'ext.mailings.addList': ({ ext }, { uuids, ids, call }) =>
		ext.mailings.addList(uuid(uuids), id(ids, 'list_id'), call),
	'ext.mailings.release': ({ ext }, { uuids, body, call }) =>
		ext.mailings.release(uuid(uuids), parseBody(releaseBody, body), call),
	'ext.mailings.cancel': ({ ext }, { uuids, call }) => ext.mailings.cancel(uuid(uuids), call),
	'ext.mailings.page': ({ ext }, { query, call }) => {
		const key = query.text('key');
		const filter = key === undefined ? {} : { key };
		return readPage(query, (page) => ext.mailings.page({ ...page, ...filter }, call));
	},
	'ext.mailings.results': ({ ext }, { uuids, query, call }) =>
		ext.mailings.results(uuid(uuids), resultsRequest(query), call),
	...suppressionOperations,
	...deliveryOperations,
	'ext.mailings.status': ({ ext }, { uuids, call }) => ext.mailings.status(uuid(uuids), call),
};

type Resource = 'lists' | 'subscribers' | 'fields' | 'webhooks';
type Verb = 'page' | 'create' | 'get' | 'replace' | 'patch' | 'delete';

function crud<R extends Resource, T, In>(
	resource: R,
	key: string,
	of: (served: Served, asked: Asked) => Crud<T, In>,
): Record<`${R}.${Verb}`, Perform> {
	const verbs: Record<Verb, Perform> = {
		page: (served, asked) => readPage(asked.query, (page) => of(served, asked).page(page, asked.call)),
		create: (served, asked) => of(served, asked).create(unchecked(asked.body), asked.call),
		get: (served, asked) => of(served, asked).get(id(asked.ids, key), asked.call),
		replace: (served, asked) =>
			of(served, asked).replace(id(asked.ids, key), unchecked(asked.body), asked.call),
		patch: (served, asked) => of(served, asked).patch(id(asked.ids, key), unchecked(asked.body), asked.call),
		delete: (served, asked) => of(served, asked).delete(id(asked.ids, key), asked.call),
	};
	const named = Object.entries(verbs).map(([verb, perform]) => [`${resource}.${verb}`, perform]);
	// Keys are made of the resource and the verbs above.
	return Object.fromEntries(named) as Record<`${R}.${Verb}`, Perform>;
}

/** The engine checks every input itself and answers with DRF's complaints: what comes in is handed on as it came. */
function unchecked<T>(value: unknown): T {
	return value as T;
}

function id(ids: Asked['ids'], name: string): number {
	const value = ids[name];
	if (value === undefined) throw new Error(`the route has no {${name}}`);
	return value;
}

function uuid(uuids: Asked['uuids']): string {
	const value = uuids['uuid'];
	if (value === undefined) throw new Error('the route has no {uuid}');
	return value;
}

function subscriberFilter(query: Query) {
	const contains = query.filter('email__icontains');
	const exact = query.filter('email__exact');
	const is_active = query.boolean('is_active');
	return {
		...(contains !== undefined && { email__icontains: contains }),
		...(exact !== undefined && { email__exact: exact }),
		...(is_active !== undefined && { is_active }),
	};
}

function messageFilter(query: Query): MessageFilter {
	const names = ['status', 'to', 'campaign_unique_id', 'since'] as const;
	const values = names.flatMap((name) => {
		const value = query.filter(name);
		return value === undefined ? [] : [[name, value] as const];
	});
	return Object.fromEntries(values);
}

function resultsRequest(query: Query): ResultsRequest {
	const after = query.integer('after');
	const limit = query.integer('limit');
	return {
		...(after !== undefined && Number.isSafeInteger(after) && { after }),
		...(limit !== undefined && Number.isSafeInteger(limit) && { limit }),
		...(query.text('only') === 'findings' && { only: 'findings' as const }),
	};
}

function scopeOf(query: Query): MessageScope {
	const submission = query.filter('submission');
	const mailing = query.filter('mailing');
	if (submission !== undefined) return { submission };
	if (mailing !== undefined) return { mailing };
	throw invalid({ submission: [{ code: 'required', message: 'This field is required.' }] });
}
