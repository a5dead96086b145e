/**
 * Every operation of the API: path, scopes, parameters, body, answer. Client, server and OpenAPI document read this
 * table. `/ext/` operations exist only in mailctl (api-decisions 38); the others are in the service document,
 * "Endpoints".
 */
import type { Api } from './api.js';
import { StoredBytes } from './attachments.js';
import type { bodies } from './bodies.js';
import {
	AcceptAck,
	AudiencePart,
	Campaign,
	CampaignResults,
	CampaignSession,
	CampaignStatus,
	campaignStates,
	LeftOutPeople,
	ListAck,
	PlannedTiming,
} from './campaigns.js';
import {
	type Extensions,
	ImportAck,
	ImportCounts,
	MessageSlice,
	RawMessage,
	Session,
} from './capabilities.js';
import {
	deliveryStates,
	SigningSecret,
	StoppedWebhook,
	WebhookDelivery,
	WebhookDeliveryDetail,
} from './deliveries.js';
import { SubscriberSlice, TupleSlice, tupleKeyNames } from './exports.js';
import { AddedList, ListDetails } from './inputs.js';
import { Erasure, Person, PersonMessages } from './people.js';
import {
	DeletedMessages,
	eventTypes,
	Field,
	List,
	LoggedEvent,
	Message,
	MessageDetail,
	messageStates,
	Report,
	Sender,
	SendingProgress,
	SendResult,
	Subscriber,
	Template,
	TestResult,
	Webhook,
} from './records.js';
import { CampaignLinks, ReportDetails } from './reports.js';
import type { JsonSchema } from './schema/fields.js';
import * as t from './schema/record.js';
import {
	Suppression,
	SuppressionAck,
	SuppressionRemoval,
	SuppressionSlice,
	suppressionReasons,
	suppressionSources,
} from './suppressions.js';

export const scopes = ['read', 'send', 'admin'] as const;
export type Scope = (typeof scopes)[number];

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface Parameter {
	/**
	 * Only `texts` reads all values of a repeated parameter. The other kinds read the last value. `filter` and `uuid`
	 * trim the text. `filter`, `uuid` and `id` treat a blank text as absent. For a text that is not an integer, `integer`
	 * and `id` return NaN, and `whole` returns undefined. A `word` must be one of `words`. `readPage` reads `page`.
	 */
	kind:
		| 'text'
		| 'texts'
		| 'filter'
		| 'uuid'
		| 'exact'
		| 'integer'
		| 'whole'
		| 'id'
		| 'boolean'
		| 'word'
		| 'page';
	schema: JsonSchema;
	words?: readonly string[];
	default?: string | number | boolean;
}

/** `under` is the key that contains the method's result. */
export type Answer = t.Shape<unknown> & { under?: string };

export interface Operation {
	method: Method;
	/** Ends with a slash. `{list_id}`, `{id}` and `{first}` are integers, `{uuid}` a UUID, `{sha256}` a hash. */
	path: string;
	success: 200 | 201 | 204;
	scope: Scope;
	alsoScope?: Scope;
	orScope?: Scope;
	query?: Readonly<Record<string, Parameter>>;
	body?: keyof typeof bodies;
	answer?: Answer;
	/**
	 * Names of the arguments of the `Api` method, in order. Three names mean objects: `body` contains the values of the
	 * body, `query` contains the values of path and query, and `input` contains all values. These objects omit values
	 * that are separate arguments. Default: the values of the path, then `input`.
	 */
	args?: readonly string[];
	/** Query or body values that become options of the call: `{ for_ms: 'forMs' }` passes `for_ms` as `forMs`. */
	options?: Readonly<Record<string, 'unless' | 'forMs' | 'forget'>>;
	/** The client never retries this operation, because it is not idempotent although its HTTP method is. */
	isUnsafe?: true;
	isRepeatable?: true;
	/** The server answers a repeated Idempotency-Key with its first answer. */
	isKeyed?: true;
}

const string = { type: 'string' };
const uuid = { type: 'string', format: 'uuid' };
const truth = { type: 'string', enum: ['True', 'False', 'true', 'false', '1', '0'] };
const wireDate = { type: 'string', pattern: String.raw`^\d{1,2}\.\d{1,2}\.\d{4}$` };
const fromZero = { type: 'integer', minimum: 0, default: 0 };
const upToThousand = { type: 'integer', minimum: 1, maximum: 1000, default: 1000 };

function parameter(kind: Parameter['kind'], schema: JsonSchema = string): Parameter {
	return { kind, schema };
}

function word(words: readonly string[], schema: JsonSchema = string): Parameter {
	return { kind: 'word', words, schema };
}

const filter = parameter('filter');
const ordering = word(['date_created', '-date_created']);
const cursor = parameter('text');
const limit: Parameter = { kind: 'integer', schema: upToThousand, default: 1000 };
const paging = {
	page: parameter('page', { anyOf: [{ type: 'integer', minimum: 1 }, { const: 'last' }], default: 1 }),
	page_size: parameter('page', { type: 'integer', minimum: 1, maximum: 1000, default: 100 }),
};
const subscriberFilters = {
	email__icontains: filter,
	email__exact: filter,
	is_active: parameter('boolean', truth),
};
const exported = { after: { ...parameter('integer', fromZero), default: 0 }, limit };
const results = { after: parameter('whole', fromZero), limit: parameter('whole', upToThousand) };
const messageFilters = {
	status: word(messageStates, { type: 'string', enum: [...messageStates] }),
	to: filter,
	campaign_unique_id: parameter('filter', uuid),
	tag: filter,
	since: filter,
	ordering,
};
const suppressionFilters = {
	email__icontains: filter,
	email__exact: filter,
	reason: word(suppressionReasons),
	source: word(suppressionSources),
	list_id: parameter('id'),
};
const reportDays = {
	date_from: parameter('text', wireDate),
	date_to: parameter('text', wireDate),
	campaign_unique_id: parameter('text', uuid),
};
const reportQuery = {
	...reportDays,
	event_types: parameter('texts', {
		type: 'array',
		items: { type: 'string', enum: [...eventTypes] },
	}),
};

type More = Partial<Omit<Operation, 'method' | 'path' | 'scope' | 'answer'>>;

function get(path: string, scope: Scope, answer: Answer, more: More = {}): Operation {
	return { method: 'GET', path, success: 200, scope, answer, ...more };
}

function post(path: string, scope: Scope, answer: Answer, more: More = {}): Operation {
	return { method: 'POST', path, success: 200, scope, answer, ...more };
}

function put(path: string, scope: Scope, answer: Answer, more: More): Operation {
	return { method: 'PUT', path, success: 200, scope, answer, ...more };
}

function patch(path: string, scope: Scope, answer: Answer, more: More): Operation {
	return { method: 'PATCH', path, success: 200, scope, answer, ...more };
}

function silent(method: 'POST' | 'DELETE', path: string, scope: Scope, more: More = {}): Operation {
	return { method, path, success: 204, scope, ...more };
}

function under(name: string, key: string, result: t.Shape<unknown>): Answer {
	return { ...t.component(name, { [key]: t.needed(result) }), under: key };
}

type Verb = 'page' | 'create' | 'get' | 'replace' | 'patch' | 'delete';
type Resource = 'List' | 'Subscriber' | 'Field' | 'Webhook' | 'Sender' | 'Template';

function crud<P extends string>(
	prefix: P,
	record: t.Shape<unknown> & { name: Resource },
	{
		all,
		one,
		scope = 'read',
		query,
	}: { all: string; one: string; scope?: Scope; query?: Operation['query'] },
): Record<`${P}.${Verb}`, Operation> {
	const { name } = record;
	const verbs: Record<Verb, Operation> = {
		page: get(all, scope, t.pageOf(record), { query: { ...query, ...paging } }),
		create: post(all, 'admin', record, { success: 201, body: `${name}Input` }),
		get: get(one, scope, record),
		// In the service document, PUT of a list requires no field.
		replace: put(one, 'admin', record, { body: name === 'List' ? 'ListPatch' : `${name}Input` }),
		patch: patch(one, 'admin', record, { body: `${name}Patch` }),
		delete: silent('DELETE', one, 'admin'),
	};
	const entries = Object.entries(verbs).map(([verb, operation]) => [`${prefix}.${verb}`, operation]);
	return Object.fromEntries(entries) as Record<`${P}.${Verb}`, Operation>;
}

const people = '/ext/people/';
const messages = '/ext/messages/';
const message = '/ext/messages/{uuid}/';
const list = '/ext/lists/{list_id}/';
const importSession = '/ext/imports/{uuid}/';
/** In the API, a campaign is called a mailing (api-decisions 38). */
const campaigns = '/ext/mailings/';
const campaign = '/ext/mailings/{uuid}/';
const suppressions = '/ext/suppressions/';
const attachment = '/ext/attachments/{sha256}/';
const deliveries = '/ext/webhooks/{id}/deliveries/';
const secrets = '/ext/webhooks/secret/';

const stoppedWebhooks = under('StoppedWebhooks', 'stopped', t.listOf(StoppedWebhook));
const signingSecrets = under('SigningSecrets', 'secrets', t.listOf(SigningSecret));
const reported = under('Report', 'results', Report);
const loggedEvents = under('LoggedEvents', 'results', t.listOf(LoggedEvent));
const deleted = under('Deleted', 'deleted', t.count);
const counted = under('Count', 'count', t.count);
const replayed = under('Replayed', 'replayed', t.count);

export const operations = {
	...crud('lists', List, { all: '/sub/lists/', one: '/sub/lists/{list_id}/' }),
	...crud('subscribers', Subscriber, {
		all: '/sub/lists/{list_id}/subscribers/',
		one: '/sub/lists/{list_id}/subscribers/{id}/',
		query: subscriberFilters,
	}),
	...crud('fields', Field, { all: '/sub/fields/', one: '/sub/fields/{id}/' }),
	// Answers contain webhook passwords (api-decisions 18), so reading webhooks requires `admin`.
	...crud('webhooks', Webhook, { all: '/webhooks/', one: '/webhooks/{id}/', scope: 'admin' }),
	'webhooks.test': get('/webhooks/{id}/run_test/', 'admin', TestResult, { isUnsafe: true }),
	// Senders and events are not in the service document, but services of this API have them (api-decisions 48).
	...crud('senders', Sender, { all: '/senders/', one: '/senders/{id}/' }),
	events: get('/message/events/{uuid}/', 'read', loggedEvents),

	send: post('/message/send/', 'send', SendResult, { body: 'SendRequest', isKeyed: true }),
	report: get('/stat/reports/events-report/', 'read', reported, { query: reportQuery }),

	...crud('ext.templates', Template, { all: '/ext/templates/', one: '/ext/templates/{uuid}/' }),

	'ext.messages.page': get(
		messages,
		'read',
		t.pageOf(Message, { cursor: t.text, deleted: DeletedMessages }),
		{ query: { ...messageFilters, ...paging } },
	),
	'ext.messages.slice': get(`${messages}slice/`, 'read', MessageSlice, {
		query: { ...messageFilters, cursor: { ...cursor, default: '' }, limit },
	}),
	'ext.messages.progress': get(`${messages}progress/`, 'send', SendingProgress, {
		query: { submission: parameter('filter', uuid), campaign: parameter('filter', uuid) },
	}),
	'ext.messages.get': get(message, 'read', MessageDetail),
	'ext.messages.cancel': post(`${message}cancel/`, 'send', MessageDetail, { alsoScope: 'read' }),
	'ext.messages.retry': post(`${message}retry/`, 'send', MessageDetail, { alsoScope: 'read' }),
	'ext.messages.raw': get(`${message}raw/`, 'read', RawMessage),

	'ext.reports.report': get('/ext/reports/events-report/', 'read', reported, {
		query: { ...reportQuery, tag: filter, human: parameter('boolean', truth) },
	}),
	'ext.reports.details': get('/ext/reports/details/', 'read', ReportDetails, {
		query: { ...reportDays, lists: parameter('boolean') },
	}),
	'ext.reports.links': get(`${campaign}links/`, 'read', CampaignLinks),

	'ext.lists.add': post('/ext/lists/', 'admin', AddedList, { body: 'ListInput', isKeyed: true }),
	'ext.lists.get': get(list, 'read', ListDetails),
	'ext.lists.patch': patch(list, 'admin', ListDetails, { body: 'ListDetailsPatch' }),

	'ext.subscribers.merge': patch('/ext/lists/{list_id}/subscribers/{id}/', 'admin', Subscriber, {
		body: 'SubscriberMerge',
		isUnsafe: true,
	}),
	'ext.subscribers.add': post('/ext/lists/{list_id}/subscribers/', 'admin', Subscriber, {
		body: 'SubscriberAddition',
		args: ['list_id', 'subscriber', 'input'],
		isRepeatable: true,
	}),
	'ext.subscribers.clear': post(`${list}clear/`, 'admin', deleted),
	'ext.fields.countUses': get('/ext/fields/{id}/uses/', 'read', counted),

	'ext.exports.slice': get('/ext/lists/{list_id}/subscribers/', 'read', SubscriberSlice, {
		query: { ...subscriberFilters, ...exported },
	}),
	'ext.tuples.slice': get(`${list}tuples/`, 'read', TupleSlice, {
		query: {
			...subscriberFilters,
			keys: {
				...word(tupleKeyNames, { type: 'string', enum: [...tupleKeyNames], default: 'imported' }),
				default: 'imported',
			},
			...exported,
		},
	}),

	/** The address is in the body, because logs contain paths. */
	'ext.erasures.erase': post('/ext/erasures/', 'admin', Erasure, { body: 'ErasureBody', args: ['email'] }),
	'ext.erasures.lift': silent('POST', '/ext/erasures/lift/', 'admin', {
		body: 'ErasureBody',
		args: ['email'],
	}),

	'ext.imports.open': post('/ext/imports/', 'admin', Session, { body: 'ImportSpec', args: ['key', 'input'] }),
	'ext.imports.put': put(`${importSession}batches/{first}/`, 'admin', ImportAck, { body: 'ImportBatch' }),
	'ext.imports.finish': post(`${importSession}finish/`, 'admin', ImportCounts),

	'ext.campaigns.open': post(campaigns, 'send', CampaignSession, {
		body: 'CampaignSpec',
		args: ['key', 'body'],
		options: { unless: 'unless' },
	}),
	'ext.campaigns.check': silent('POST', `${campaigns}check/`, 'send', {
		body: 'CampaignSpec',
		args: ['key', 'body'],
		options: { unless: 'unless' },
	}),
	'ext.campaigns.put': put(`${campaign}batches/{first}/`, 'send', AcceptAck, { body: 'RecipientBatch' }),
	'ext.campaigns.putRequests': put(`${campaign}requests/{first}/`, 'send', AcceptAck, {
		body: 'RequestBatch',
	}),
	'ext.campaigns.complete': silent('POST', `${campaign}complete/`, 'send', { body: 'CompleteBody' }),
	/** The server starts no new slice after `for_ms`. If the list has more subscribers, the answer has `is_partial`. */
	'ext.campaigns.addList': post(`${campaign}lists/{list_id}/`, 'send', ListAck, {
		alsoScope: 'read',
		query: { for_ms: parameter('integer') },
		args: ['uuid', 'list_id'],
		options: { for_ms: 'forMs' },
	}),
	'ext.campaigns.release': silent('POST', `${campaign}release/`, 'send', { body: 'ReleaseBody' }),
	'ext.campaigns.cancel': silent('POST', `${campaign}cancel/`, 'send', {
		query: { forget: { ...parameter('boolean'), default: false } },
		args: ['uuid'],
		options: { forget: 'forget' },
	}),
	'ext.campaigns.page': get(campaigns, 'send', t.pageOf(Campaign), {
		query: {
			key: parameter('exact'),
			id: parameter('uuid'),
			state: word(campaignStates),
			since: filter,
			ordering,
			...paging,
		},
		orScope: 'read',
	}),
	'ext.campaigns.results': get(`${campaign}results/`, 'send', CampaignResults, {
		query: { ...results, only: word(['findings'], { type: 'string', enum: ['findings'] }) },
		orScope: 'read',
	}),
	'ext.campaigns.status': get(campaign, 'send', CampaignStatus, { orScope: 'read' }),

	'ext.audiences.foresee': post(`${campaigns}foresee/{list_id}/`, 'send', AudiencePart, {
		body: 'CampaignSpec',
		query: { after: { ...results.after, default: 0 } },
		args: ['body', 'query'],
		alsoScope: 'read',
	}),
	'ext.audiences.plan': post(`${campaigns}plan/`, 'send', PlannedTiming, { body: 'PlanBody' }),
	'ext.audiences.leftOut': get(`${campaign}left-out/`, 'send', LeftOutPeople, {
		query: { after: { ...results.after, default: 0 }, limit: { ...results.limit, default: 1000 } },
		alsoScope: 'read',
	}),

	'ext.attachments.find': get(attachment, 'send', StoredBytes),
	/** If the file does not have the hash in the path, the server answers 400. */
	'ext.attachments.put': put(attachment, 'send', StoredBytes, { body: 'File' }),

	'ext.suppressions.page': get(suppressions, 'read', t.pageOf(Suppression), {
		query: { ...suppressionFilters, ...paging },
	}),
	'ext.suppressions.slice': get(`${suppressions}slices/`, 'read', SuppressionSlice, {
		query: { ...suppressionFilters, cursor, limit },
	}),
	'ext.suppressions.create': post(suppressions, 'admin', Suppression, {
		success: 201,
		body: 'SuppressionInput',
	}),
	'ext.suppressions.put': put(suppressions, 'admin', SuppressionAck, {
		body: 'SuppressionRows',
		args: ['rows'],
	}),
	'ext.suppressions.check': post(`${suppressions}check/`, 'read', SuppressionAck, {
		body: 'SuppressionRows',
		args: ['rows'],
	}),
	'ext.suppressions.remove': post(`${suppressions}remove/`, 'admin', SuppressionRemoval, {
		body: 'SuppressionRemovalInput',
	}),

	/** The address is in the query, because logs contain no queries. */
	'ext.people.get': get(people, 'read', Person, {
		query: { email: { ...parameter('text'), default: '' } },
		args: ['email'],
	}),
	'ext.people.messages': get(`${people}messages/`, 'read', PersonMessages, {
		query: {
			email: { ...parameter('text'), default: '' },
			since: filter,
			before: parameter('integer'),
			limit: { ...limit, default: 100 },
		},
		args: ['email', 'input'],
	}),

	'ext.deliveries.page': get(deliveries, 'admin', t.pageOf(WebhookDelivery), {
		query: { state: word(deliveryStates), since: filter, ordering, ...paging },
	}),
	'ext.deliveries.replay': post(`${deliveries}replay/`, 'admin', replayed, {
		body: 'ReplayBody',
	}),
	'ext.deliveries.get': get(`${deliveries}{uuid}/`, 'admin', WebhookDeliveryDetail),
	'ext.deliveries.stopped': get('/ext/webhooks/stopped/', 'admin', stoppedWebhooks, {}),
	'ext.deliveries.secrets': get(secrets, 'admin', signingSecrets),
	'ext.deliveries.rotateSecret': post(secrets, 'admin', signingSecrets),
} satisfies Readonly<Record<MethodName, Operation>>;

export type OperationName = keyof typeof operations;

type MethodName =
	| 'send'
	| 'events'
	| 'report'
	| NamesOf<Pick<Api, 'lists' | 'fields' | 'webhooks' | 'senders'>, ''>
	| NamesOf<{ subscribers: ReturnType<Api['subscribers']> }, ''>
	| Exclude<NamesOf<Extensions, 'ext.'>, 'ext.imports.putChecked'>;
type NamesOf<Groups, Prefix extends string> = {
	[G in keyof Groups & string]: `${Prefix}${G}.${keyof Groups[G] & string}`;
}[keyof Groups & string];

export function placeholdersOf(path: string): string[] {
	return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
}

export function argumentNames({ args, path, body, query }: Operation): readonly string[] {
	const hasInput = body !== undefined || query !== undefined;
	// Batches take `first` as a member of their input, not as a separate argument.
	const places = placeholdersOf(path).filter((name) => name !== 'first');
	return args ?? [...places, ...(hasInput ? ['input'] : [])];
}

export const openPaths = {
	root: '/',
	health: '/healthz',
	ready: '/readyz',
	openapi: '/openapi.json',
} as const;
/** For Prometheus. Needs a token with the scope `read`, in `X-Secure-Token` or in `Authorization: Bearer`. */
export const metricsPath = '/metrics';

export function scopesOf({
	scope,
	alsoScope,
	orScope,
}: Pick<Operation, 'scope' | 'alsoScope' | 'orScope'>): readonly (readonly Scope[])[] {
	const needed = alsoScope === undefined ? [scope] : [scope, alsoScope];
	return orScope === undefined ? [needed] : [needed, [orScope]];
}
