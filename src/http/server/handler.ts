/** Requests to answers, without sockets: who asks, may he, what for, one call of the Api. Order and texts are DRF's. */
import { randomUUID } from 'node:crypto';
import type { Call } from '../../api/api.js';
import { type Clock, formatDateTime, systemClock } from '../../api/datetime.js';
import { ApiError, invalid, notFound } from '../../api/errors.js';
import { headerNames } from '../errors.js';
import type { About, Handler, HttpRequest, HttpResponse } from '../messages.js';
import { type Method, maxBatchBytes, maxBodyBytes, type Operation, type Route, routes } from '../routes.js';
import { assertAllowed, assertNotTooOften, authenticated, bearerOf, identified } from './access.js';
import { asApiError, empty, type Headers, headOf, json, refusal } from './answers.js';
import type { Authenticate, Principal } from './authenticate.js';
import { readJson } from './body.js';
import { findPlace, type OwnPlace, type PathIds, type Place, readIds } from './match.js';
import { createMetrics, type Gauges, type Metrics } from './metrics.js';
import { operations, type Served } from './operations.js';
import { answerOwn, type OwnOptions } from './own.js';
import { parseQuery, type Query } from './query.js';
import type { Throttle } from './throttle.js';

export interface HandlerOptions {
	served: Served;
	/** Of this program, for `GET /`. */
	version: string;
	/** Names that `GET /` announces. */
	extensions: readonly string[];
	authenticate: Authenticate;
	/** Absent: nobody is throttled. */
	throttle?: Throttle;
	/** Why no work can be taken at the moment, or null. Absent: it always can. */
	ready?(): Promise<string | null>;
	/** Further figures for `/metrics`. */
	gauges?(): Promise<Gauges>;
	/** Shared with who else counts; absent: one of its own. */
	metrics?: Metrics;
	/** Told of what nobody foresaw, with the stack. */
	log?(line: object): void;
	clock?: Clock;
}

/** The whole API. Never throws: what nobody foresaw is a 500 that says nothing, and a line of the log. */
export function createHandler(options: HandlerOptions): Handler {
	const metrics = options.metrics ?? createMetrics();
	return async (request) => {
		const asked = look(request);
		const finish = metrics.begin();
		const about: About = { path: asked.shownPath, token: null, error: null };
		const response = await answer({ ...options, metrics }, asked, about).catch((error: unknown) =>
			refuse(options, asked, about, error),
		);
		finish(operationName(asked), response.status);
		return { ...(asked.method === 'HEAD' ? headOf(response) : response), about };
	};
}

/** A request, and where in the table it leads. */
interface Looked {
	request: HttpRequest;
	method: string;
	place: Place | OwnPlace | null;
	/** Null: none of this method here. */
	operation: Operation | null;
	query: Query;
	shownPath: string;
}

interface Settled extends HandlerOptions {
	metrics: Metrics;
}

function look(request: HttpRequest): Looked {
	// A proxy may ask with the whole URL (RFC 9112 s.3.2.2).
	const target = request.target.replace(/^https?:\/\/[^/?#]*/i, '');
	const [path = '', query = ''] = splitOnce(target, '?');
	const place = findPlace(path);
	const { method } = request;
	const operation = place?.kind === 'operations' ? operationOf(place, method) : null;
	return {
		request,
		method,
		place,
		operation,
		query: parseQuery(query),
		shownPath: isHarmless(place) ? path : maskPath(path),
	};
}

function operationOf({ operations: here }: Place, method: string): Operation | null {
	// A HEAD of what acts would act, unasked for (api-decisions 33).
	if (method === 'HEAD') return here.GET !== undefined && !('isUnsafe' in routes[here.GET]) ? here.GET : null;
	// An unknown method is no key of these.
	return here[method as Method] ?? null;
}

/** Authentication, permission, throttling, then the list a path lies under, then the method: DRF's order. */
async function answer(options: Settled, asked: Looked, about: About): Promise<HttpResponse> {
	const { place, operation, method } = asked;
	if (place === null) throw notFound();
	if (place.kind === 'own') return answerOwn(ownOptions(options, asked, about), place.path, method);
	const principal = await authenticated(options.authenticate, asked.request.headers);
	about.token = principal.name;
	if (operation !== null) assertAllowed(principal, routes[operation].scope);
	assertNotTooOften(options.throttle, principal);
	const allow = { Allow: place.allow };
	if (method === 'OPTIONS') return empty(204, allow);
	await assertList(options.served, place);
	if (operation === null) throw methodNotAllowed(method);
	const ids = readIds(place.values);
	if (ids === null) throw notFound();
	return perform(options, { asked, operation, principal, ids, allow });
}

interface Performing {
	asked: Looked;
	operation: Operation;
	principal: Principal;
	ids: PathIds;
	allow: Headers;
}

async function perform({ served }: Settled, performing: Performing): Promise<HttpResponse> {
	const { asked, operation, principal, ids, allow } = performing;
	const route: Route = routes[operation];
	const body = route.hasBody === true ? await readBody(served, performing) : {};
	const headers: Headers = { ...allow };
	const call = callOf(asked.request, { operation, principal, headers });
	const value = await operations[operation](served, { ...ids, query: asked.query, body, call });
	return route.success === 204 ? empty(204, headers) : json(route.success, value, headers);
}

/** DRF finds the object before it reads the body: an unknown one is a 404 whatever the body is. */
async function readBody(served: Served, { asked, operation, ids }: Performing): Promise<unknown> {
	try {
		return await readJson(asked.request, operation in batches ? maxBatchBytes : maxBodyBytes);
	} catch (error) {
		const sought = soughtBefore(operation);
		if (sought !== null) await operations[sought](served, { ...ids, query: asked.query, body: {}, call: {} });
		throw error;
	}
}

const batches = { 'ext.imports.put': true, 'ext.mailings.put': true };

function soughtBefore(operation: Operation): Operation | null {
	if (operation === 'ext.subscribers.merge') return 'subscribers.get';
	const get = operation.replace(/\.(replace|patch)$/, '.get');
	return get !== operation && isOperation(get) ? get : null;
}

function isOperation(name: string): name is Operation {
	return Object.hasOwn(routes, name);
}

/** What lies under a list is not there when the list is not, whatever else is wrong. */
async function assertList({ api }: Served, { path, values }: Place): Promise<void> {
	if (!path.startsWith('/sub/lists/{list_id}/subscribers/')) return;
	const ids = readIds({ list_id: values['list_id'] ?? '' })?.ids;
	if (ids?.['list_id'] === undefined) throw notFound();
	await api.lists.get(ids['list_id']);
}

function methodNotAllowed(method: string): ApiError {
	return new ApiError('method_not_allowed', `Method "${method}" not allowed.`);
}

/** What rides along with the call, and comes back in headers. */
function callOf(
	{ headers, signal }: HttpRequest,
	answering: { operation: Operation; principal: Principal; headers: Headers },
): Call {
	const key = answering.operation === 'send' ? idempotencyKey(headers) : undefined;
	return {
		client: answering.principal.name,
		...(signal !== undefined && { signal }),
		...(key !== undefined && { idempotencyKey: key }),
		onAccepted: ({ campaign, submission, replayed }) => {
			if (campaign !== null) answering.headers[headerNames.campaign] = campaign;
			if (submission !== null) answering.headers[headerNames.submission] = submission;
			if (replayed) answering.headers[headerNames.idempotencyReplayed] = 'true';
		},
	};
}

function idempotencyKey(headers: HttpRequest['headers']): string | undefined {
	const key = headers[headerNames.idempotencyKey.toLowerCase()];
	if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key;
	const message = 'Use 1 to 255 visible ASCII characters.';
	throw invalid({ [headerNames.idempotencyKey]: [{ code: 'invalid', message }] });
}

/** `/metrics` wants a token with `read`; Prometheus gives it in its own way. */
function ownOptions(options: Settled, { request }: Looked, about: About): OwnOptions {
	const { authenticate } = options;
	return {
		...options,
		authorize: async () => {
			const bearer = bearerOf(request.headers);
			const principal = await (bearer === undefined
				? authenticated(authenticate, request.headers)
				: identified(authenticate, bearer));
			about.token = principal.name;
			assertAllowed(principal, 'read');
		},
		methodNotAllowed,
	};
}

function refuse(options: HandlerOptions, asked: Looked, about: About, error: unknown): HttpResponse {
	const allow: Headers = asked.place === null ? {} : { Allow: asked.place.allow };
	if (asked.request.signal?.aborted === true) {
		about.error = 'client_left';
		return empty(clientLeft);
	}
	const known = asApiError(error);
	if (known === null) report(options, asked, about, error);
	const answered = known ?? new ApiError('server_error', 'A server error occurred.');
	about.error = answered.code;
	return refusal(answered, allow);
}

/** For figures and logs alone, as others number it: nobody is there to be told. */
const clientLeft = 499;

function report(
	{ log, clock = systemClock }: HandlerOptions,
	{ request, method }: Looked,
	{ path }: About,
	error: unknown,
): void {
	const known =
		error instanceof Error ? { error: error.message, stack: error.stack } : { error: String(error) };
	const id = request.id ?? randomUUID();
	log?.({ time: `${formatDateTime(clock.now())}Z`, level: 'error', id, method, path, ...known });
}

function operationName({ place, operation }: Looked): string {
	if (place?.kind === 'own') return place.path;
	return operation ?? 'other';
}

/** Words of the table, integers and UUIDs: no token is one of these. */
function isHarmless(place: Place | OwnPlace | null): boolean {
	return place !== null && (place.kind === 'own' || readIds(place.values) !== null);
}

/** Somebody may have put a token into a path that does not exist: only words are shown, and none of public pages. */
function maskPath(path: string): string {
	if (/^\/[ocuv]\//.test(path)) return `${path.slice(0, 3)}…`;
	const parts = path.slice(0, 512).split('/');
	return parts.map((part) => (/^[a-z_.-]{0,20}$/.test(part) ? part : '…')).join('/');
}

function splitOnce(text: string, separator: string): [string, string] {
	const at = text.indexOf(separator);
	return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
