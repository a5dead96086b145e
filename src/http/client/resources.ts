/** The operations of the service document over HTTP: collections, sending, the report. */
import { randomUUID } from 'node:crypto';
import type { Accepted, Api, Call, Crud, PageRequest, Webhooks } from '../../api/api.js';
import { type Capabilities, NoSenders } from '../../api/capabilities.js';
import { ApiError } from '../../api/errors.js';
import type { SenderInput, SendRequest } from '../../api/inputs.js';
import { isRecord, readJson } from '../../api/json.js';
import {
	type LoggedEvent,
	type Page,
	type Report,
	type ReportQuery,
	type Sender,
	type SendResult,
	type Subscriber,
	type TestResult,
	type Uuid,
	webhookDefaults,
} from '../../api/records.js';
import { headerNames } from '../errors.js';
import type { Operation } from '../routes.js';
import { assertNoPage, type Check, decode, every, listOf, pageOf, record, within } from './decode.js';
import { encodeQuery, encodeSend, encodeSubscriber, type QueryValues, withDefaults } from './encode.js';
import { type Endpoint, requestOperation, type Success } from './request.js';

type Resource = 'lists' | 'subscribers' | 'fields' | 'webhooks' | 'senders';

interface Shape<T> {
	resource: Resource;
	/** Name of the id in the route. */
	key: 'list_id' | 'id';
	values?: Readonly<Record<string, number>>;
	check: Check;
	/** For a PUT. */
	defaults: Readonly<Record<string, unknown>>;
	encode?: (input: unknown) => unknown;
	/** Brings a record of a foreign deployment into the contract's shape. */
	mend?: (record: T) => T;
}

/** Service document, "Lists". */
export function lists(endpoint: Endpoint): Api['lists'] {
	return crud(endpoint, {
		resource: 'lists',
		key: 'list_id',
		check: record({ id: 'id', name: 'text' }),
		defaults: {},
	});
}

/** Service document, "Additional fields". */
export function fields(endpoint: Endpoint): Api['fields'] {
	return crud(endpoint, {
		resource: 'fields',
		key: 'id',
		check: record({ id: 'id', variable: 'text', name: 'text' }),
		defaults: {},
	});
}

/** The keys of a subscriber that the commands rely on. */
export const subscriberCheck: Check = record({ id: 'id', email: 'text', is_active: 'boolean' });

/** Service document, "Subscribers". */
export function subscribers(endpoint: Endpoint, listId: number): ReturnType<Api['subscribers']> {
	return crud<Subscriber, never>(endpoint, {
		resource: 'subscribers',
		key: 'id',
		values: { list_id: listId },
		check: subscriberCheck,
		// Without is_active: the service decides it, for a suppressed address too.
		defaults: { name: '', meta: {} },
		encode: encodeSubscriber,
		mend: mendMeta,
	});
}

/** Service document, "HTTP notifications". */
export function webhooks(endpoint: Endpoint): Webhooks {
	return {
		...crud(endpoint, {
			resource: 'webhooks',
			key: 'id',
			check: record({ id: 'id', url: 'text', type: 'text' }),
			defaults: webhookDefaults,
		}),
		// Never repeated: each call sends one (api-decisions 33).
		test: async (id, call) =>
			decodeTest(
				await requestOperation(
					{ ...endpoint, retries: 0 },
					{ operation: 'webhooks.test', values: { id }, call },
				),
			),
	};
}

/** Routes that services of this API have beside the document (api-decisions 48); some lack them. */
export function senders(endpoint: Endpoint): Api['senders'] {
	const all = crud<Sender, SenderInput>(endpoint, {
		resource: 'senders',
		key: 'id',
		check: record({ id: 'id', from_email: 'text' }),
		defaults: { full_name: '', reply_to_email: '' },
	});
	const orNone = async <T>(answer: Promise<T>) =>
		answer.catch((error: unknown) => {
			throw error instanceof ApiError && error.code === 'not_found' ? new NoSenders() : error;
		});
	return {
		...all,
		// A page that is not there is of a collection that is.
		page: (request, call) =>
			(request.page ?? 1) > 1 || request.query !== undefined
				? all.page(request, call)
				: orNone(all.page(request, call)),
		create: (input, call) => orNone(all.create(input, call)),
	};
}

/** The events of one message. */
export async function events(endpoint: Endpoint, uuid: Uuid, call: Call | undefined): Promise<LoggedEvent[]> {
	const success = await requestOperation(endpoint, { operation: 'events', values: { uuid }, call });
	const check = within('results', listOf(record({ type: 'text', date: 'text' })));
	return decode<{ results: LoggedEvent[] }>(success, check).results;
}

function crud<T, In>(endpoint: Endpoint, shape: Shape<T>): Crud<T, In> {
	const { resource, key, check, encode = (input) => input, mend = (one) => one } = shape;
	const operation = (verb: 'page' | 'create' | 'get' | 'replace' | 'patch' | 'delete') =>
		`${resource}.${verb}` as const;
	const at = (id: number) => ({ ...shape.values, [key]: id });
	const one = async (name: Operation, more: { id?: number; body?: unknown; call: Call | undefined }) => {
		const values = more.id === undefined ? (shape.values ?? {}) : at(more.id);
		const { body, call } = more;
		return mend(decode<T>(await requestOperation(endpoint, { operation: name, values, body, call }), check));
	};
	return {
		page: async (request, call) => {
			const query = pageQuery(request);
			const success = await requestOperation(endpoint, {
				operation: operation('page'),
				values: shape.values ?? {},
				query,
				call,
			});
			const page = decode<Page<T>>(success, pageOf(check));
			return shape.mend === undefined ? page : { ...page, results: page.results.map(mend) };
		},
		get: (id, call) => one(operation('get'), { id, call }),
		create: (input, call) => one(operation('create'), { body: encode(input), call }),
		replace: (id, input, call) =>
			one(operation('replace'), { id, body: encode(withDefaults(shape.defaults, input)), call }),
		patch: (id, input, call) => one(operation('patch'), { id, body: encode(input), call }),
		delete: async (id, call) =>
			assertNoPage(
				await requestOperation(endpoint, { operation: operation('delete'), values: at(id), call }),
			),
	};
}

/** The link to a following page is taken as it is, with everything that the deployment put into it. */
export function pageQuery(request: PageRequest): string {
	const { query, ...values } = request;
	return query ?? encodeQuery(values as QueryValues); // filters are texts and booleans
}

/** Assumption: null is no meta, and a string holds its JSON, as in requests. */
export function mendMeta(subscriber: Subscriber): Subscriber {
	const meta: unknown = subscriber.meta;
	if (isRecord(meta)) return subscriber;
	return { ...subscriber, meta: typeof meta === 'string' ? parsedMeta(meta) : {} };
}

function parsedMeta(text: string): Record<string, unknown> {
	try {
		const value: unknown = JSON.parse(text);
		return isRecord(value) ? value : {};
	} catch {
		return {};
	}
}

const sendCheck = every(
	record({ messages: 'array', result: 'boolean', messages_created: 'count' }),
	within('messages', listOf(record({ to: 'text', id: 'text' }))),
);

/**
 * Sends a message, never twice unless the deployment recognises a repeated key. An answer that breaks the contract is
 * `bad_answer`, and the message is not sent again.
 */
export async function sendMessage(
	endpoint: Endpoint,
	capabilities: () => Promise<Capabilities>,
	{ request, call }: { request: SendRequest; call: Call | undefined },
): Promise<SendResult> {
	const { service, idempotentSend } = await capabilities();
	const key = call?.idempotencyKey ?? (idempotentSend ? randomUUID() : null);
	const success = await requestOperation(endpoint, {
		operation: 'send',
		body: encodeSend(request, { isOurs: service === 'mailctl' }),
		...(key !== null && { headers: { [headerNames.idempotencyKey]: key } }),
		call,
		isRepeatable: idempotentSend,
	});
	const result = decode<SendResult>(success, sendCheck);
	call?.onAccepted?.(acceptedBy(success.answer.headers));
	return result;
}

/** Header names come in lower case. */
function acceptedBy(headers: Readonly<Record<string, string>>): Accepted {
	return {
		campaign: headers[headerNames.campaign.toLowerCase()] ?? null,
		submission: headers[headerNames.submission.toLowerCase()] ?? null,
		replayed: headers[headerNames.idempotencyReplayed.toLowerCase()]?.toLowerCase() === 'true',
	};
}

const reportCheck = within(
	'results',
	every(
		record({ total: 'object', data: 'array' }),
		within('total', record({ sent: 'number', opened: 'number' })),
		within('data', listOf(record({ date: 'text', opened: 'number', sent: 'number' }))),
	),
);

/** The events report: days and totals of `results`. Values of the query go out as they are. */
export async function report(
	endpoint: Endpoint,
	operation: 'report' | 'ext.reports.report',
	{ query, call }: { query: ReportQuery & { tag?: string; human?: boolean }; call: Call | undefined },
): Promise<Report> {
	const success = await requestOperation(endpoint, { operation, query: encodeQuery({ ...query }), call });
	return decode<{ results: Report }>(success, reportCheck).results;
}

/**
 * The answer of `run_test`. The service document shows no body, so any success is one (api-decisions 33): a known key
 * that is missing is null, unknown keys are kept.
 */
function decodeTest({ answer }: Success): TestResult {
	const body = readJson(answer.body);
	const answered = body.kind === 'valid' && isRecord(body.value) ? body.value : {};
	const { result, status_code, error, duration_ms } = answered;
	return {
		...answered,
		result: typeof result === 'boolean' ? result : null,
		status_code: typeof status_code === 'number' ? status_code : null,
		error: typeof error === 'string' ? error : null,
		duration_ms: typeof duration_ms === 'number' ? duration_ms : null,
	};
}
