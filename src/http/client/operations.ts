/** Makes the HTTP requests of the API. Services other than mailctl accept all requests except those of extensions. */
import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { emailKey } from '../../api/address.js';
import type { Accepted, Api, Call } from '../../api/api.js';
import type { Capabilities, Extensions } from '../../api/capabilities.js';
import { ApiError, NoSenders } from '../../api/errors.js';
import { type TupleKeys, tupleKeys } from '../../api/exports.js';
import { isRecord, readJson } from '../../api/json.js';
import { argumentNames, type Operation, type OperationName, operations } from '../../api/operations.js';
import { quote } from '../../api/quote.js';
import { SendResult, type TestResult, webhookDefaults } from '../../api/records.js';
import type { Shape } from '../../api/schema/record.js';
import { headerNames } from '../wire.js';
import { pageText } from './errors.js';
import { type Endpoint, type Request, type Success, sendRequest } from './request.js';

type Method = (...args: unknown[]) => Promise<unknown>;
type Values = Readonly<Record<string, unknown>>;

export function documented(
	endpoint: Endpoint,
	capabilities: () => Promise<Capabilities>,
): Omit<Api, 'capabilities' | 'close'> {
	const method = (name: OperationName) => methodOf(endpoint, name);
	const { lists, fields, webhooks, senders, subscribers = {} } = groupsOf('', method);
	const { page = never, create = never } = senders ?? {};
	const own: Readonly<Record<string, unknown>> = {
		lists,
		fields,
		webhooks,
		senders: {
			...senders,
			// A 404 for a later page does not mean that the service has no senders.
			page: (request: { page?: number; query?: string }, call?: Call) =>
				(request.page ?? 1) > 1 || request.query !== undefined
					? page(request, call)
					: orNoSenders(page(request, call)),
			create: (input: unknown, call?: Call) => orNoSenders(create(input, call)),
		},
		subscribers: (listId: number) => bindAll(subscribers, listId),
		send: (request: unknown, call?: Call) => send(endpoint, capabilities, { request, call }),
		events: method('events'),
		report: method('report'),
	};
	return own as unknown as Omit<Api, 'capabilities' | 'close'>;
}

export function extensions(endpoint: Endpoint): Extensions {
	return groupsOf('ext.', (name) => methodOf(endpoint, name)) as unknown as Extensions;
}

function groupsOf(
	prefix: 'ext.' | '',
	method: (name: OperationName) => Method,
): Readonly<Record<string, Readonly<Record<string, Method>>>> {
	const groups: Record<string, Record<string, Method>> = {};
	for (const name of Object.keys(operations) as OperationName[]) {
		if (name.startsWith('ext.') !== (prefix === 'ext.')) continue;
		const [group = '', verb = ''] = name.slice(prefix.length).split('.');
		groups[group] = { ...groups[group], [verb]: method(name) };
	}
	return groups;
}

const never: Method = () => Promise.reject(new Error('there is no such operation'));

function bindAll(methods: Readonly<Record<string, Method>>, first: unknown): Record<string, Method> {
	const bound = Object.entries(methods).map(([verb, method]) => [
		verb,
		(...args: unknown[]) => method(first, ...args),
	]);
	return Object.fromEntries(bound);
}

async function orNoSenders<T>(answer: Promise<T>): Promise<T> {
	return answer.catch((error: unknown) => {
		throw error instanceof ApiError && error.code === 'not_found' ? new NoSenders() : error;
	});
}

function methodOf(endpoint: Endpoint, name: OperationName): Method {
	const operation: Operation = operations[name];
	return async (...args) => {
		const request = requestOf(name, operation, args);
		// Each retry would send another test delivery (api-decisions 33).
		const asked = name === 'webhooks.test' ? { ...endpoint, retries: 0 } : endpoint;
		const success = await sendRequest(asked, request);
		if (name === 'webhooks.test') return testResult(success);
		if (name === 'ext.exports.slice' || name === 'ext.tuples.slice')
			await announceNext(success, request.call);
		const { answer } = operation;
		if (answer === undefined) return name.startsWith('ext.') ? assertNothing(success) : assertNoPage(success);
		const value = decode(success, answer);
		if (name === 'ext.tuples.slice') assertTuples(success, value, args[1] as { keys: TupleKeys });
		return isOfSubscribers(name) ? withMeta(value) : answer.under === undefined ? value : value[answer.under];
	};
}

function requestOf(name: OperationName, operation: Operation, args: readonly unknown[]): Request {
	const { method, query = {}, body, options = {}, isKeyed } = operation;
	const names = argumentNames(operation);
	const call = args[names.length] as Call | undefined;
	const values: Record<string, unknown> = {};
	let content: unknown;
	names.forEach((key, index) => {
		const given = args[index];
		if (key === 'body' || (key === 'input' && body !== undefined)) content = given;
		else if (key === 'input' || key === 'query') Object.assign(values, given);
		else if (given !== null) values[key] = given;
	});
	for (const [key, option] of Object.entries(options)) {
		const value = (call as Values | undefined)?.[option];
		if (value !== undefined) values[key] = value;
	}
	const path = operation.path.replace(/\{(\w+)\}/g, (_, part: string) => {
		let value = values[part];
		// A batch contains `first`, which belongs in the path instead of the body.
		if (!(part in values) && isRecord(content)) {
			value = content[part];
			content = without(content, part);
		}
		delete values[part];
		return encodeURIComponent(String(value ?? ''));
	});
	const isInBody = (key: string) => body !== undefined && !(key in query);
	const own = Object.entries(values).filter(([key, value]) => isInBody(key) && value !== undefined);
	if (own.length > 0) content = { ...(isRecord(content) && content), ...Object.fromEntries(own) };
	const asked = Object.entries(values).filter(([key]) => !isInBody(key));
	const key = isKeyed === true ? (call?.idempotencyKey ?? randomUUID()) : null;
	const isIdempotent = !operation.isUnsafe && ['GET', 'PUT', 'DELETE'].includes(method);
	return {
		method,
		path,
		// `query` is the whole query string of a link to a page, so it replaces the other parameters.
		query: 'page' in query && typeof values['query'] === 'string' ? values['query'] : encodeQuery(asked),
		...(body !== undefined && { body: encode(name, content) }),
		...(key !== null && { headers: { [headerNames.idempotencyKey]: key }, isKeyed: true }),
		call,
		// Only `addList` has `for_ms`. A retry of `addList` continues after the last staged subscriber.
		isRepeatable: isIdempotent || isKeyed || operation.isRepeatable || 'for_ms' in values,
	};
}

function encodeQuery(values: readonly (readonly [string, unknown])[]): string {
	const query = new URLSearchParams();
	for (const [key, value] of values)
		for (const one of Array.isArray(value) ? value : [value]) {
			if (one === undefined) continue;
			query.append(key, typeof one === 'boolean' ? (one ? 'True' : 'False') : String(one));
		}
	const text = query.toString();
	return text === '' ? '' : `?${text}`;
}

/** Some services keep values that a PUT omits. Send these defaults, because PUT must replace everything. */
const defaults: Readonly<Partial<Record<OperationName, Values>>> = {
	// `is_active` has no default, because the service chooses the value, for example for a suppressed address.
	'subscribers.replace': { name: '', meta: {} },
	'webhooks.replace': webhookDefaults,
	'senders.replace': { full_name: '', reply_to_email: '' },
};

/** Sends `meta` as a string that contains JSON, as the service document shows it (api-decisions 13). */
function encode(name: OperationName, input: unknown): unknown {
	const isSubscriber = name.startsWith('subscribers.');
	if (!(isSubscriber || name in defaults) || !isRecord(input)) return input;
	const given = Object.entries(input).filter(([, value]) => value !== undefined);
	const whole: Values = { ...defaults[name], ...Object.fromEntries(given) };
	const { meta } = whole;
	const isText = isSubscriber && typeof meta === 'object' && meta !== null;
	return isText ? { ...whole, meta: JSON.stringify(meta) } : whole;
}

function isOfSubscribers(name: OperationName): boolean {
	return /^subscribers\.|^ext\.exports\./.test(name);
}

/** Assumption: a service may answer `meta` as null (empty) or, as in requests, as a string that contains JSON. */
function withMeta(answer: Values): Values {
	const { results } = answer;
	if (Array.isArray(results)) return { ...answer, results: results.map(withMeta) };
	if (isRecord(answer['meta'])) return answer;
	const parsed = typeof answer['meta'] === 'string' ? readJson(Buffer.from(answer['meta'])) : null;
	return { ...answer, meta: parsed?.kind === 'valid' && isRecord(parsed.value) ? parsed.value : {} };
}

function assertTuples(success: Success, { results }: Values, { keys }: { keys: TupleKeys }): void {
	const { length } = tupleKeys[keys];
	const wrong = (results as readonly unknown[]).findIndex(
		(one) => !Array.isArray(one) || one.length !== length,
	);
	if (wrong !== -1)
		throw badAnswer(success, `has no valid results.${wrong}: expected a list of ${length} values`);
}

async function announceNext({ answer }: Success, call: Call | undefined): Promise<void> {
	const next = answer.headers[headerNames.next.toLowerCase()];
	if (call?.onNext === undefined || next === undefined || !/^\d{1,15}$/.test(next)) return;
	call.onNext(Number(next));
	// The caller may have requested the next slice. Let undici write that request before this answer is decoded.
	for (let turn = 0; turn < 2; turn += 1) await setImmediate();
}

/** If a send may have succeeded, retries only if the service knows idempotency keys, so that no mail is sent twice. */
async function send(
	endpoint: Endpoint,
	capabilities: () => Promise<Capabilities>,
	{ request, call }: { request: unknown; call: Call | undefined },
): Promise<unknown> {
	const { service, idempotentSend } = await capabilities();
	const key = call?.idempotencyKey ?? (idempotentSend ? randomUUID() : null);
	const { method, path } = operations.send;
	const success = await sendRequest(endpoint, {
		method,
		path,
		isKeyed: true,
		body: encodeSend(request, { isOurs: service === 'mailctl' }),
		...(key !== null && { headers: { [headerNames.idempotencyKey]: key } }),
		call,
		isRepeatable: idempotentSend,
	});
	const result = decode(success, SendResult);
	call?.onAccepted?.(acceptedBy(success.answer.headers));
	return result;
}

function encodeSend(request: unknown, { isOurs }: { isOurs: boolean }): unknown {
	if (!isRecord(request)) return request;
	const known = isOurs ? request : without(request, 'list_id', 'campaign_unique_id', 'attachments');
	if (!Array.isArray(known['to'])) return known;
	const seen = new Set<unknown>();
	const to = known['to'].filter((one: unknown) => {
		const key = typeof one === 'string' ? emailKey(one.trim()) : one;
		return !seen.has(key) && seen.add(key);
	});
	return { ...known, to };
}

function acceptedBy(headers: Readonly<Record<string, string>>): Accepted {
	return {
		campaign: headers[headerNames.campaign.toLowerCase()] ?? null,
		submission: headers[headerNames.submission.toLowerCase()] ?? null,
		replayed: headers[headerNames.idempotencyReplayed.toLowerCase()]?.toLowerCase() === 'true',
	};
}

/** The service document does not describe the answer's body, so accept any (api-decisions 33). */
function testResult({ answer }: Success): TestResult {
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

function without(values: Values, ...names: readonly string[]): Values {
	return Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));
}

function decode(success: Success, shape: Shape<unknown>): Readonly<Record<string, unknown>> {
	const body = readJson(success.answer.body);
	if (body.kind === 'empty') throw badAnswer(success, 'has no body');
	if (body.kind === 'invalid') assertNoPage(success);
	if (body.kind === 'invalid') throw badAnswer(success, `${body.fault}: ${excerpt(success)}`);
	if (!isRecord(body.value)) throw badAnswer(success, 'is not an object');
	const missing = shape.missing(body.value);
	if (missing !== null) throw badAnswer(success, `has no valid ${missing.path}: expected ${missing.kind}`);
	return body.value;
}

/** A proxy or a login page in front of the service may answer with HTML and a success status. */
function assertNoPage(success: Success): void {
	const { body } = success.answer;
	if (/^\s*</.test(body.toString('utf8', 0, 1_000)))
		throw badAnswer(success, `is a web page, not JSON: ${titleOf(success)}`);
}

function assertNothing(success: Success): void {
	const { status } = success.answer;
	if (status !== 204) throw badAnswer(success, `has status ${status} instead of 204: ${excerpt(success)}`);
}

function badAnswer({ answer, requested }: Success, fault: string): ApiError {
	const { status } = answer;
	return new ApiError('bad_answer', `The answer ${fault} (${requested.method} ${requested.path}).`, {
		http: { status, method: requested.method, path: requested.path },
	});
}

function excerpt({ answer, requested }: Success): string {
	return quote(answer.body.toString('utf8', 0, 400), requested.secrets).slice(0, 80);
}

function titleOf({ answer, requested }: Success): string {
	return `"${quote(pageText(answer.body).slice(0, 400), requested.secrets).slice(0, 80)}"`;
}
