/** Requests to answers, without sockets: who asks, may he, what for, one call of the Api. Order and texts are DRF's. */
import { randomUUID } from 'node:crypto';
import type { Call } from '../../api/api.js';
import { type Clock, formatDateTime, systemClock } from '../../api/datetime.js';
import { ApiError, invalid, notFound } from '../../api/errors.js';
import { headerNames } from '../errors.js';
import type { About, Handler, HttpRequest, HttpResponse } from '../messages.js';
import { type Operation, type Route, routes, scopesOf } from '../routes.js';
import {
	assertAllowed,
	assertNotTooOften,
	authenticated,
	bearerOf,
	identified,
	methodNotAllowed,
} from './access.js';
import { asApiError, empty, type Headers, headOf, json, refusal } from './answers.js';
import type { Authenticate, Principal } from './authenticate.js';
import { type Looked, look, operationName } from './look.js';
import { readIds } from './match.js';
import { createMetrics, type Gauges, type Metrics } from './metrics.js';
import { operations, type Served } from './operations.js';
import { answerOwn, type OwnOptions } from './own.js';
import { assertList, type Reading, readBody } from './sought.js';
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

interface Settled extends HandlerOptions {
	metrics: Metrics;
}

/** Authentication, permission, throttling, then the list that a path lies under, then the method: DRF's order. */
async function answer(options: Settled, asked: Looked, about: About): Promise<HttpResponse> {
	const { place, operation, method } = asked;
	if (place === null) throw notFound();
	if (place.kind === 'own') return answerOwn(ownOptions(options, asked, about), place.path, method);
	const principal = await authenticated(options.authenticate, asked.request.headers);
	about.token = principal.name;
	if (operation !== null) assertAllowed(principal, scopesOf(routes[operation]));
	assertNotTooOften(options.throttle, principal);
	const allow = { Allow: place.allow };
	if (method === 'OPTIONS') return empty(204, allow);
	if (operation === null) {
		await assertList(options.served, place);
		throw methodNotAllowed(method);
	}
	const ids = readIds(place.values);
	if (ids === null) throw notFound();
	return perform(options, { asked, operation, principal, ids, allow });
}

interface Performing extends Reading {
	principal: Principal;
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
			assertAllowed(principal, ['read']);
		},
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
