import { createHash } from 'node:crypto';
import type { Accepted, Call } from '../../api/api.js';
import { type BodySize, bodies } from '../../api/bodies.js';
import { type Clock, systemClock } from '../../api/datetime.js';
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
import {
	type ApiPath,
	type Match,
	matchRequest,
	operationName,
	type PathIds,
	type Query,
	readIds,
	type ServicePath,
} from './match.js';
import { type ExtendedApi, perform } from './operations.js';
import { asApiError, empty, errorResponse, type Headers, headOf, isStorageFailure, json } from './respond.js';
import { createMetrics, createRequestLog, type Gauges, type Metrics, type RequestLog } from './telemetry.js';

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

export function createHandler(options: HandlerOptions): Handler {
	const handler = new ApiHandler(options);
	return (exchange) => handler.handle(exchange);
}

interface Performed {
	operation: OperationName;
	query: Query;
	ids: PathIds;
	principal: Principal;
}

/** nginx's status for a client that closed the connection. Appears only in metrics and logs. */
const clientLeft = 499;

class ApiHandler {
	readonly #options: HandlerOptions;
	readonly #metrics: Metrics;
	readonly #log: RequestLog;
	/** Cached, because composing `/openapi.json` costs milliseconds of CPU time. */
	#document: Promise<HttpResponse> | null = null;

	constructor(options: HandlerOptions) {
		this.#options = options;
		const { metrics = createMetrics(), clock = systemClock, log = () => undefined } = options;
		this.#metrics = metrics;
		this.#log = createRequestLog({ clock, log });
	}

	async handle(exchange: Exchange): Promise<HttpResponse> {
		const match = matchRequest(exchange);
		exchange.match = match;
		exchange.shownPath = match.shownPath;
		const finish = this.#metrics.begin();
		const response = await this.#answer(exchange, match).catch((error: unknown) =>
			this.#answerError(exchange, match, error),
		);
		finish(operationName(match), response.status);
		return exchange.method === 'HEAD' ? headOf(response) : response;
	}

	/** Follows DRF's order: authentication, permission, throttling, the list in the path, the method. */
	async #answer(exchange: Exchange, { path, operation, query }: Match): Promise<HttpResponse> {
		const { authenticate, throttle } = this.#options;
		if (path === null) throw notFound();
		if (path.kind === 'service') return this.#answerService(exchange, path);
		const principal = await authenticated(authenticate, exchange.headers);
		exchange.principal = principal;
		if (operation !== null) assertAllowed(principal, scopesOf(operations[operation]));
		assertNotTooOften(throttle, principal);
		if (exchange.method === 'OPTIONS') return empty(204, { Allow: path.allow });
		if (operation === null) {
			await this.#assertList(path);
			throw methodNotAllowed(exchange.method);
		}
		const { ids } = path;
		if (ids === null) throw notFound();
		const performed = { operation, query, ids, principal };
		const { success, body: kind }: Operation = operations[operation];
		const body = kind === undefined ? {} : await this.#readBody(exchange, performed, bodies[kind].size);
		const headers: Headers = { Allow: path.allow };
		const call = new ServedCall(exchange, performed, headers);
		const value = await perform(operation, this.#options, { ids, query, body, call });
		return success === 204 ? empty(204, headers) : json(success, value, headers);
	}

	/** Like DRF, answers 404 for an unknown object even if the body is invalid. */
	async #readBody(
		request: HttpRequest,
		{ operation, query, ids }: Performed,
		size: BodySize,
	): Promise<unknown> {
		try {
			return await (size === 'file' ? readFile(request) : readJson(request, size));
		} catch (error) {
			const found = foundFirst(operation);
			if (found !== null) await perform(found, this.#options, { ids, query, body: {}, call: {} });
			throw error;
		}
	}

	async #assertList({ template, values }: ApiPath): Promise<void> {
		if (!template.startsWith('/sub/lists/{list_id}/subscribers/')) return;
		const id = readIds({ list_id: values['list_id'] ?? '' })?.['list_id'];
		if (id === undefined) throw notFound();
		await this.#options.api.lists.get(Number(id));
	}

	#answerError(exchange: Exchange, { path }: Match, error: unknown): HttpResponse {
		const { failed } = this.#options;
		if (exchange.signal?.aborted === true) {
			exchange.error = 'client_left';
			return empty(clientLeft);
		}
		if (!(error instanceof ApiError)) failed?.(error);
		const known = asApiError(error);
		if (known === null || isStorageFailure(known)) this.#log.failed(exchange, error, exchange.shownPath);
		const answered = known ?? new ApiError('server_error', 'A server error occurred.');
		exchange.error = answered.code;
		return errorResponse(answered, path === null ? {} : { Allow: path.allow });
	}

	async #answerService(exchange: Exchange, { name, allow }: ServicePath): Promise<HttpResponse> {
		const { version, extensions } = this.#options;
		const { method } = exchange;
		if (name === metricsPath) await this.#authorizeMetrics(exchange);
		if (method === 'OPTIONS') return empty(204, { Allow: allow });
		if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(method);
		switch (name) {
			case openPaths.root:
				return json(200, { service: 'mailctl', version, extensions });
			case openPaths.health:
				return json(200, { status: 'ok' });
			case openPaths.ready:
				return this.#readiness();
			case openPaths.openapi:
				this.#document ??= composeDocument(version);
				return document(await this.#document, exchange.headers['if-none-match']);
			case metricsPath: {
				const { headers } = json(200, '', { 'Content-Type': metricsType });
				return { status: 200, headers, body: this.#metrics.render(await this.#options.gauges?.()) };
			}
		}
	}

	async #authorizeMetrics(exchange: Exchange): Promise<void> {
		const { authenticate } = this.#options;
		const bearer = bearerOf(exchange.headers);
		const principal = await (bearer === undefined
			? authenticated(authenticate, exchange.headers)
			: identified(authenticate, bearer));
		exchange.principal = principal;
		assertAllowed(principal, [['read']]);
	}

	async #readiness(): Promise<HttpResponse> {
		const reason = await Promise.resolve(this.#options.ready?.() ?? null).catch(
			(error: unknown) => asApiError(error)?.message ?? 'The database does not answer.',
		);
		return reason === null
			? json(200, { status: 'ok' })
			: json(503, { status: 'unavailable', detail: reason }, { 'Retry-After': '1' });
	}
}

const metricsType = 'text/plain; version=0.0.4; charset=utf-8';

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

function foundFirst(operation: OperationName): OperationName | null {
	if (operation === 'ext.subscribers.merge') return 'subscribers.get';
	if (operation === 'subscribers.create') return 'lists.get';
	const get = operation.replace(/\.(replace|patch)$/, '.get');
	return get !== operation && isOperation(get) ? get : null;
}

function isOperation(name: string): name is OperationName {
	return Object.hasOwn(operations, name);
}

function methodNotAllowed(method: string): ApiError {
	return new ApiError('method_not_allowed', `Method "${method}" not allowed.`);
}

async function composeDocument(version: string): Promise<HttpResponse> {
	const { describeApi } = await import('./openapi.js');
	const composed = json(200, describeApi(version), { 'Cache-Control': 'no-cache' });
	const body = Buffer.from(composed.body ?? '');
	const ETag = `"${createHash('sha256').update(body).digest('base64url')}"`;
	return { status: 200, headers: { ...composed.headers, ETag }, body };
}

/** Compares ETags weakly (RFC 9110 s.13.1.2). */
function document(response: HttpResponse, known: string | undefined): HttpResponse {
	const { ETag = '', 'Content-Type': _, ...headers } = response.headers;
	const isKnown = known?.split(',').some((tag) => ['*', ETag].includes(tag.trim().replace(/^W\//, '')));
	return isKnown === true ? { status: 304, headers: { ...headers, ETag }, body: null } : response;
}
