import { createHash } from 'node:crypto';
import type { Accepted, Call } from '../../api/api.js';
import { type BodySize, bodies } from '../../api/bodies.js';
import { type Clock, formatDateTime, systemClock } from '../../api/datetime.js';
import { ApiError, invalid, notFound } from '../../api/errors.js';
import { idempotencyKeyRule } from '../../api/messages.js';
import {
	metricsPath,
	type Operation,
	type OperationName,
	openPaths,
	operations,
	scopesOf,
} from '../../api/operations.js';
import type { HttpRequest, HttpResponse } from '../wire.js';
import { headerNames } from '../wire.js';
import {
	type Authenticate,
	assertAllowed,
	assertNotTooOften,
	authenticated,
	bearerOf,
	identified,
	type Principal,
	seesAll,
	type Throttle,
} from './authenticate.js';
import { readFile, readJson } from './body.js';
import type { Exchange, Handler } from './exchange.js';
import type { Query } from './match.js';
import {
	type ApiPath,
	matchRequest,
	operationName,
	type PathIds,
	readIds,
	type ServicePath,
} from './match.js';
import { type ExtendedApi, perform } from './operations.js';
import { asApiError, empty, errorResponse, type Headers, headOf, isStorageFailure, json } from './respond.js';
import { createMetrics, type Gauges, type Metrics } from './telemetry.js';

export interface HandlerOptions extends ExtendedApi {
	version: string;
	extensions: readonly string[];
	authenticate: Authenticate;
	throttle?: Throttle;
	ready?(): Promise<string | null>;
	gauges?(): Promise<Gauges>;
	metrics?: Metrics;
	log?(line: object): void;
	failed?(error: unknown): void;
	clock?: Clock;
}

/** An unexpected error gives a 500 without details, and a line in the log. */
export function createHandler(options: HandlerOptions): Handler {
	const settled: Settled = { ...options, metrics: options.metrics ?? createMetrics() };
	return async (exchange) => {
		const match = matchRequest(exchange);
		exchange.match = match;
		exchange.shownPath = match.shownPath;
		const finish = settled.metrics.begin();
		const response = await answer(settled, exchange).catch((error: unknown) =>
			answerError(settled, exchange, error),
		);
		finish(operationName(match), response.status);
		return exchange.method === 'HEAD' ? headOf(response) : response;
	};
}

interface Settled extends HandlerOptions {
	metrics: Metrics;
	/** Cached, because composing `/openapi.json` costs milliseconds of CPU time. */
	document?: Promise<HttpResponse>;
}

/** Follows DRF's order: authentication, permission, throttling, the list in the path, the method. */
async function answer(options: Settled, exchange: Exchange): Promise<HttpResponse> {
	const { method, match } = exchange;
	const path = match?.path ?? null;
	if (match === null || path === null) throw notFound();
	if (path.kind === 'service') return answerService(options, exchange, path);
	const principal = await authenticated(options.authenticate, exchange.headers);
	exchange.principal = principal;
	const { operation, query } = match;
	if (operation !== null) assertAllowed(principal, scopesOf(operations[operation]));
	assertNotTooOften(options.throttle, principal);
	const allow = { Allow: path.allow };
	if (method === 'OPTIONS') return empty(204, allow);
	if (operation === null) {
		await assertList(options, path);
		throw methodNotAllowed(method);
	}
	if (path.ids === null) throw notFound();
	return answerOperation(options, exchange, { operation, query, principal, ids: path.ids, allow });
}

interface Performed {
	operation: OperationName;
	query: Query;
	principal: Principal;
	ids: PathIds;
	allow: Headers;
}

async function answerOperation(
	api: ExtendedApi,
	request: HttpRequest,
	performed: Performed,
): Promise<HttpResponse> {
	const { operation: name, query, ids, allow } = performed;
	const operation: Operation = operations[name];
	const body =
		operation.body === undefined ? {} : await readBody(api, request, performed, bodies[operation.body].size);
	const headers: Headers = { ...allow };
	const call = new ServedCall(request, performed, headers);
	const value = await perform(name, api, { ids: ids.ids, uuids: ids.uuids, query, body, call });
	return operation.success === 204 ? empty(204, headers) : json(operation.success, value, headers);
}

class ServedCall implements Call {
	readonly client: string;
	ownOnly?: true;
	idempotencyKey?: string;
	readonly onAccepted: (accepted: Accepted) => void;
	readonly onNext: (next: number | null) => void;
	readonly #request: HttpRequest;

	constructor(request: HttpRequest, { operation: name, principal }: Performed, answered: Headers) {
		const operation: Operation = operations[name];
		this.#request = request;
		this.client = principal.name;
		if (!seesAll(principal, operation)) this.ownOnly = true;
		const key = operation.isKeyed === true ? idempotencyKey(request.headers) : undefined;
		if (key !== undefined) this.idempotencyKey = key;
		this.onAccepted = ({ campaign, submission, replayed }) => {
			if (campaign !== null) answered[headerNames.campaign] = campaign;
			if (submission !== null) answered[headerNames.submission] = submission;
			if (replayed) answered[headerNames.idempotencyReplayed] = 'true';
		};
		this.onNext = (next) => {
			if (next !== null) answered[headerNames.next] = String(next);
		};
	}

	get signal(): AbortSignal | undefined {
		return this.#request.signal;
	}
}

function idempotencyKey(headers: HttpRequest['headers']): string | undefined {
	const key = headers[headerNames.idempotencyKey.toLowerCase()];
	if (key === undefined || idempotencyKeyRule.isKept(key)) return key;
	const { message } = idempotencyKeyRule;
	throw invalid({ [headerNames.idempotencyKey]: [{ code: 'invalid', message }] });
}

/** DRF finds the object before it reads the body: an unknown object gives 404 whatever the body is. */
async function readBody(
	api: ExtendedApi,
	request: HttpRequest,
	{ operation, query, ids }: Performed,
	size: BodySize,
): Promise<unknown> {
	try {
		return await (size === 'file' ? readFile(request) : readJson(request, size));
	} catch (error) {
		const found = foundFirst(operation);
		if (found !== null) await perform(found, api, { ...ids, query, body: {}, call: {} });
		throw error;
	}
}

function foundFirst(operation: OperationName): OperationName | null {
	if (operation === 'ext.subscribers.merge') return 'subscribers.get';
	if (operation === 'subscribers.create') return 'lists.get';
	const get = operation.replace(/\.(replace|patch)$/, '.get');
	return get !== operation && isOperation(get) ? get : null;
}

function isOperation(name: string): name is OperationName {
	return Object.hasOwn(operations, name);
}

async function assertList({ api }: ExtendedApi, { template, values }: ApiPath): Promise<void> {
	if (!template.startsWith('/sub/lists/{list_id}/subscribers/')) return;
	const ids = readIds({ list_id: values['list_id'] ?? '' })?.ids;
	if (ids?.['list_id'] === undefined) throw notFound();
	await api.lists.get(ids['list_id']);
}

function methodNotAllowed(method: string): ApiError {
	return new ApiError('method_not_allowed', `Method "${method}" not allowed.`);
}

/** The usual status for a client that closed the connection; only for metrics and logs. */
const clientLeft = 499;

function answerError(options: HandlerOptions, exchange: Exchange, error: unknown): HttpResponse {
	if (exchange.signal?.aborted === true) {
		exchange.error = 'client_left';
		return empty(clientLeft);
	}
	if (!(error instanceof ApiError)) options.failed?.(error);
	const known = asApiError(error);
	if (known === null || isStorageFailure(known)) logUnexpected(options, exchange, error);
	const answered = known ?? new ApiError('server_error', 'A server error occurred.');
	exchange.error = answered.code;
	const path = exchange.match?.path ?? null;
	return errorResponse(answered, path === null ? {} : { Allow: path.allow });
}

function logUnexpected(
	{ log, clock = systemClock }: HandlerOptions,
	{ id, method, shownPath: path }: Exchange,
	error: unknown,
): void {
	const known =
		error instanceof Error
			? { error: error.message, ...causeOf(error), stack: error.stack }
			: { error: String(error) };
	log?.({ time: `${formatDateTime(clock.now())}Z`, level: 'error', id, method, path, ...known });
}

function causeOf({ cause }: Error): { cause?: string } {
	if (!(cause instanceof Error)) return {};
	return { cause: 'code' in cause ? `${cause.message} (${String(cause.code)})` : cause.message };
}

async function answerService(
	options: Settled,
	exchange: Exchange,
	{ name, allow }: ServicePath,
): Promise<HttpResponse> {
	const { method } = exchange;
	if (name === metricsPath) await authorizeMetrics(options, exchange);
	if (method === 'OPTIONS') return empty(204, { Allow: allow });
	if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(method);
	switch (name) {
		case openPaths.root: {
			const { version, extensions } = options;
			return json(200, { service: 'mailctl', version, extensions });
		}
		case openPaths.health:
			return json(200, { status: 'ok' });
		case openPaths.ready:
			return readiness(options);
		case openPaths.openapi:
			options.document ??= composeDocument(options.version);
			return document(await options.document, exchange.headers['if-none-match']);
		case metricsPath:
			return figures(options);
	}
}

async function composeDocument(version: string): Promise<HttpResponse> {
	const { describeApi } = await import('./openapi.js');
	const composed = json(200, describeApi(version), { 'Cache-Control': 'no-cache' });
	const body = Buffer.from(composed.body ?? '');
	const ETag = `"${createHash('sha256').update(body).digest('base64url')}"`;
	return { status: 200, headers: { ...composed.headers, ETag }, body };
}

/** RFC 9110 s.13.1.2, weak comparison. */
function document(response: HttpResponse, known: string | undefined): HttpResponse {
	const { ETag = '', 'Content-Type': _, ...headers } = response.headers;
	const isKnown = known?.split(',').some((tag) => ['*', ETag].includes(tag.trim().replace(/^W\//, '')));
	return isKnown === true ? { status: 304, headers: { ...headers, ETag }, body: null } : response;
}

async function authorizeMetrics({ authenticate }: Settled, exchange: Exchange): Promise<void> {
	const bearer = bearerOf(exchange.headers);
	const principal = await (bearer === undefined
		? authenticated(authenticate, exchange.headers)
		: identified(authenticate, bearer));
	exchange.principal = principal;
	assertAllowed(principal, [['read']]);
}

async function readiness({ ready }: Settled): Promise<HttpResponse> {
	const reason = await Promise.resolve(ready?.() ?? null).catch(
		(error: unknown) => asApiError(error)?.message ?? 'The database does not answer.',
	);
	return reason === null
		? json(200, { status: 'ok' })
		: json(503, { status: 'unavailable', detail: reason }, { 'Retry-After': '1' });
}

async function figures({ metrics, gauges }: Settled): Promise<HttpResponse> {
	const body = metrics.render(await gauges?.());
	return { ...json(200, ''), headers: { ...json(200, '').headers, 'Content-Type': metricsType }, body };
}

const metricsType = 'text/plain; version=0.0.4; charset=utf-8';
