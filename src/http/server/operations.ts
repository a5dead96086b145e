/** Every route as one call of the `Api`: decode, one call, encode. The Api checks the values. */
import type { Api, Call, Crud } from '../../api/api.js';
import type { CampaignSpec, Extensions } from '../../api/capabilities.js';
import type { EncodedReads } from '../../api/exports.js';
import { withoutExactNumbers } from '../../api/json.js';
import type { ReportQuery } from '../../api/records.js';
import type { SuppressionRow } from '../../api/suppressions.js';
import type { Operation } from '../routes.js';
import {
	campaignFilter,
	deliveryFilter,
	exportRequest,
	keysOf,
	messageFilter,
	resultsRequest,
	scopeOf,
	subscriberFilter,
	suppressionFilter,
} from './filters.js';
import {
	addBody,
	campaignOpening,
	completeBody,
	erasureBody,
	importBatch,
	importSpec,
	mergeBody,
	parseBody,
	planBody,
	recipientBatch,
	releaseBody,
	replayBody,
	requestBatch,
	suppressionRows,
} from './inputs.js';
import { type Query, readPage } from './match.js';

/** The decoded values of a request. `body` is parsed JSON of any shape, or a file. */
export interface OperationInput {
	/** Integers of the path by name. */
	ids: Readonly<Record<string, number>>;
	/** UUIDs and hashes of the path by name. */
	uuids: Readonly<Record<string, string>>;
	query: Query;
	body: unknown;
	call: Call;
}

/** The Api with every extension; only the engine has it. */
export interface ExtendedApi {
	api: Api;
	ext: Extensions;
	encoded: EncodedReads;
}

/** Resolves with the body of the response; `undefined` = none. */
export type Perform = (api: ExtendedApi, input: OperationInput) => Promise<unknown>;

export const operations: Readonly<Record<Operation, Perform>> = {
	...crud('lists', 'list_id', ({ api }) => api.lists),
	...crud('subscribers', 'id', ({ api }, { ids }) => api.subscribers(id(ids, 'list_id'))),
	...crud('fields', 'id', ({ api }) => api.fields),
	...crud('webhooks', 'id', ({ api }) => api.webhooks),
	...crud('senders', 'id', ({ api }) => api.senders),
	'subscribers.page': ({ encoded }, { ids, query }) => {
		const filter = subscriberFilter(query);
		return readPage(query, (page) => encoded.page(id(ids, 'list_id'), { ...filter, ...page }));
	},
	'webhooks.test': ({ api }, { ids, call }) => api.webhooks.test(id(ids, 'id'), call),
	events: async ({ api }, { uuids, call }) => ({ results: await api.events(uuid(uuids), call) }),
	send: ({ api }, { body, call }) => api.send(unchecked(body), call),
	report: async ({ api }, { query, call }) => ({
		results: await api.report(unchecked(query.reportQuery()), call),
	}),

	'ext.templates.page': ({ ext }, { query, call }) =>
		readPage(query, (page) => ext.templates.page(page, call)),
	'ext.templates.create': ({ ext }, { body, call }) => ext.templates.create(unchecked(body), call),
	'ext.templates.get': ({ ext }, { uuids, call }) => ext.templates.get(uuid(uuids), call),
	'ext.templates.replace': ({ ext }, { uuids, body, call }) =>
		ext.templates.replace(uuid(uuids), unchecked(body), call),
	'ext.templates.patch': ({ ext }, { uuids, body, call }) =>
		ext.templates.patch(uuid(uuids), unchecked(body), call),
	'ext.templates.delete': ({ ext }, { uuids, call }) => ext.templates.delete(uuid(uuids), call),
	'ext.messages.page': ({ ext }, { query, call }) => {
		const filter = messageFilter(query);
		return readPage(query, (page) => ext.messages.page({ ...filter, ...page }, call));
	},
	'ext.messages.slice': ({ ext }, { query, call }) => {
		const [cursor = '', limit = 1000] = [query.text('cursor'), query.integer('limit')];
		return ext.messages.slice({ ...messageFilter(query), cursor, limit }, call);
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
	'ext.reports.details': ({ ext }, { query, call }) => {
		const { event_types: _, ...days } = unchecked<ReportQuery>(query.reportQuery());
		const lists = query.boolean('lists');
		return ext.reports.details({ ...days, ...(lists !== undefined && { lists }) }, call);
	},
	'ext.reports.links': ({ ext }, { uuids, call }) => ext.reports.links(uuid(uuids), call),
	'ext.subscribers.merge': ({ ext }, { ids, body, call }) =>
		ext.subscribers.merge(id(ids, 'list_id'), id(ids, 'id'), unchecked(parseBody(mergeBody, body)), call),
	'ext.subscribers.add': ({ ext }, { ids, body, call }) => {
		const { subscriber, ...options } = parseBody(addBody, body);
		return ext.subscribers.add(id(ids, 'list_id'), unchecked(subscriber), options, call);
	},
	'ext.subscribers.clear': async ({ ext }, { ids, call }) => ({
		deleted: await ext.subscribers.clear(id(ids, 'list_id'), call),
	}),
	'ext.lists.add': ({ ext }, { body, call }) => ext.lists.add(unchecked(body), call),
	'ext.lists.get': ({ ext }, { ids, call }) => ext.lists.get(id(ids, 'list_id'), call),
	'ext.lists.patch': ({ ext }, { ids, body, call }) =>
		ext.lists.patch(id(ids, 'list_id'), unchecked(body), call),
	'ext.fields.countUses': async ({ ext }, { ids, call }) => ({
		count: await ext.fields.countUses(id(ids, 'id'), call),
	}),
	'ext.exports.slice': ({ encoded }, { ids, query, call }) =>
		encoded.slice(id(ids, 'list_id'), exportRequest(query), call),
	'ext.tuples.slice': ({ encoded }, { ids, query, call }) => {
		const request = { ...exportRequest(query), keys: keysOf(query) };
		return encoded.tuples(id(ids, 'list_id'), request, call);
	},
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
	'ext.campaigns.open': ({ ext }, { body, call }) => {
		const { key, spec, opening } = openingOf(body);
		return ext.campaigns.open(key, spec, Object.assign(call, opening));
	},
	'ext.campaigns.check': ({ ext }, { body, call }) => {
		const { key, spec, opening } = openingOf(body);
		return ext.campaigns.check(key, spec, Object.assign(call, opening));
	},
	'ext.campaigns.put': ({ ext }, { uuids, ids, body, call }) =>
		ext.campaigns.put(uuid(uuids), { ...parseBody(recipientBatch, body), first: id(ids, 'first') }, call),
	'ext.campaigns.putRequests': ({ ext }, { uuids, ids, body, call }) =>
		ext.campaigns.putRequests(
			uuid(uuids),
			{ ...parseBody(requestBatch, body), first: id(ids, 'first') },
			call,
		),
	'ext.campaigns.complete': ({ ext }, { uuids, body, call }) =>
		ext.campaigns.complete(uuid(uuids), parseBody(completeBody, body), call),
	'ext.campaigns.addList': ({ ext }, { uuids, ids, query, call }) => {
		const forMs = query.integer('for_ms');
		const part = forMs === undefined ? {} : { forMs };
		return ext.campaigns.addList(uuid(uuids), id(ids, 'list_id'), Object.assign(call, part));
	},
	'ext.campaigns.release': ({ ext }, { uuids, body, call }) =>
		ext.campaigns.release(uuid(uuids), parseBody(releaseBody, body), call),
	'ext.campaigns.cancel': ({ ext }, { uuids, query, call }) =>
		ext.campaigns.cancel(uuid(uuids), Object.assign(call, { forget: query.boolean('forget') ?? false })),
	'ext.campaigns.page': ({ ext }, { query, call }) => {
		const filter = campaignFilter(query);
		return readPage(query, (page) => ext.campaigns.page({ ...page, ...filter }, call));
	},
	'ext.campaigns.status': ({ ext }, { uuids, call }) => ext.campaigns.status(uuid(uuids), call),
	'ext.campaigns.results': ({ ext }, { uuids, query, call }) =>
		ext.campaigns.results(uuid(uuids), resultsRequest(query), call),
	'ext.audiences.foresee': ({ ext }, { ids, query, body, call }) => {
		const { after = 0 } = resultsRequest(query);
		const request = { list_id: id(ids, 'list_id'), after };
		return ext.audiences.foresee(unchecked(openingOf(body).spec), request, call);
	},
	'ext.audiences.plan': ({ ext }, { body, call }) => ext.audiences.plan(parseBody(planBody, body), call),
	'ext.audiences.leftOut': ({ ext }, { uuids, query, call }) => {
		const { after = 0, limit = 1_000 } = resultsRequest(query);
		return ext.audiences.leftOut(uuid(uuids), { after, limit }, call);
	},
	'ext.attachments.find': ({ ext }, { uuids, call }) => ext.attachments.find(uuid(uuids, 'sha256'), call),
	'ext.attachments.put': ({ ext }, { uuids, body, call }) =>
		ext.attachments.put(uuid(uuids, 'sha256'), unchecked(body), call),
	'ext.suppressions.page': ({ ext }, { query, call }) => {
		const filter = suppressionFilter(query);
		return readPage(query, (page) => ext.suppressions.page({ ...filter, ...page }, call));
	},
	'ext.suppressions.slice': ({ ext }, { query, call }) => {
		const cursor = query.text('cursor');
		const request = { ...suppressionFilter(query), limit: query.integer('limit') ?? 1000 };
		return ext.suppressions.slice({ ...request, ...(cursor !== undefined && { cursor }) }, call);
	},
	'ext.suppressions.create': ({ ext }, { body, call }) => ext.suppressions.create(unchecked(body), call),
	'ext.suppressions.put': ({ ext }, { body, call }) => ext.suppressions.put(rowsOf(body), call),
	'ext.suppressions.check': ({ ext }, { body, call }) => ext.suppressions.check(rowsOf(body), call),
	'ext.suppressions.remove': ({ ext }, { body, call }) => ext.suppressions.remove(unchecked(body), call),
	'ext.people.get': ({ ext }, { query, call }) => ext.people.get(query.text('email') ?? '', call),
	'ext.people.messages': ({ ext }, { query, call }) => {
		const since = query.filter('since');
		const before = query.integer('before');
		const request = { limit: query.integer('limit') ?? 100 };
		return ext.people.messages(
			query.text('email') ?? '',
			{ ...request, ...(since !== undefined && { since }), ...(before !== undefined && { before }) },
			call,
		);
	},
	'ext.deliveries.page': ({ ext }, { ids, query, call }) => {
		const filter = deliveryFilter(query);
		return readPage(query, (page) => ext.deliveries.page(id(ids, 'id'), { ...filter, ...page }, call));
	},
	'ext.deliveries.get': ({ ext }, { ids, uuids, call }) =>
		ext.deliveries.get(id(ids, 'id'), uuid(uuids), call),
	'ext.deliveries.replay': async ({ ext }, { ids, body, call }) => {
		const { deliveries, failed, since, all } = parseBody(replayBody, body);
		const what = {
			failed,
			all,
			...(deliveries !== null && { deliveries }),
			...(since !== null && { since }),
		};
		return { replayed: await ext.deliveries.replay(id(ids, 'id'), what, call) };
	},
	'ext.deliveries.stopped': async ({ ext }, { call }) => ({ stopped: await ext.deliveries.stopped(call) }),
	'ext.deliveries.secrets': async ({ ext }, { call }) => ({ secrets: await ext.deliveries.secrets(call) }),
	'ext.deliveries.rotateSecret': async ({ ext }, { call }) => ({
		secrets: await ext.deliveries.rotateSecret(call),
	}),
};

type Resource = 'lists' | 'subscribers' | 'fields' | 'webhooks' | 'senders';
type Verb = 'page' | 'create' | 'get' | 'replace' | 'patch' | 'delete';

function crud<R extends Resource, T, In>(
	resource: R,
	key: string,
	of: (api: ExtendedApi, input: OperationInput) => Crud<T, In>,
): Record<`${R}.${Verb}`, Perform> {
	const verbs: Record<Verb, Perform> = {
		page: (api, input) => readPage(input.query, (page) => of(api, input).page(page, input.call)),
		create: (api, input) => of(api, input).create(unchecked(input.body), input.call),
		get: (api, input) => of(api, input).get(id(input.ids, key), input.call),
		replace: (api, input) => of(api, input).replace(id(input.ids, key), unchecked(input.body), input.call),
		patch: (api, input) => of(api, input).patch(id(input.ids, key), unchecked(input.body), input.call),
		delete: (api, input) => of(api, input).delete(id(input.ids, key), input.call),
	};
	const named = Object.entries(verbs).map(([verb, perform]) => [`${resource}.${verb}`, perform]);
	// Keys are made of the resource and the verbs above.
	return Object.fromEntries(named) as Record<`${R}.${Verb}`, Perform>;
}

/** The engine checks every input itself, with DRF's error texts: the value is passed on unchanged. */
function unchecked<T>(value: unknown): T {
	return value as T;
}

function id(ids: OperationInput['ids'], name: string): number {
	const value = ids[name];
	if (value === undefined) throw new Error(`the route has no {${name}}`);
	return value;
}

function uuid(uuids: OperationInput['uuids'], name = 'uuid'): string {
	const value = uuids[name];
	if (value === undefined) throw new Error(`the route has no {${name}}`);
	return value;
}

/** The spec is stored as it is given, and compared when the campaign is opened again. */
function openingOf(body: unknown) {
	const { key = null, ...opening } = parseBody(campaignOpening, body);
	const given = unchecked<Record<string, unknown>>(withoutExactNumbers(body));
	const { key: _key, unless: _, ...spec } = given;
	return { key, spec: unchecked<CampaignSpec>(spec), opening };
}

function rowsOf(body: unknown): readonly SuppressionRow[] {
	return unchecked(parseBody(suppressionRows, body).rows);
}
