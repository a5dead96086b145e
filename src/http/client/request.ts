/** One operation as HTTP requests, with their attempts and pauses; each has a line of the request log. */
import type { Call } from '../../api/api.js';
import { backoff, parseRetryAfter, sleep, type Wait } from '../../api/backoff.js';
import { type Clock, microsPerMs } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import { type Method, type Operation, type OperationName, operations } from '../../api/operations.js';
import { quote, secretsOf } from '../../api/quote.js';
import { headerNames } from '../errors.js';
import { errorOf, type Requested } from './errors.js';
import { isPermanent, TransportFailure, toApiError } from './failure.js';
import type { Answer, Transport } from './transport.js';

declare const __VERSION__: string;

export interface Endpoint {
	transport: Transport;
	prefix: string;
	token: string | null;
	timeoutMs: number;
	retries: number;
	trace: ((line: string) => void) | null;
	onWait: (() => Wait) | null;
	random: () => number;
	clock: Clock;
}

interface RequestContent {
	query?: string;
	body?: unknown;
	headers?: Readonly<Record<string, string>>;
	call?: Call | undefined;
}

export interface OperationRequest extends RequestContent {
	operation: OperationName;
	values?: Readonly<Record<string, string | number>>;
	isRepeatable?: boolean;
}

export interface Success {
	answer: Answer;
	requested: Requested;
}

export interface Target {
	method: Method;
	path: string;
	isRepeatable: boolean;
	/** A 409 may mean that the same request is still running. */
	isKeyed?: boolean;
}

export async function requestOperation(endpoint: Endpoint, request: OperationRequest): Promise<Success> {
	const { values = {} } = request;
	const operation: Operation = operations[request.operation];
	const { method, isUnsafe, isKeyed = false } = operation;
	const path = operation.path.replace(/\{(\w+)\}/g, (_, name) =>
		encodeURIComponent(String(values[name] ?? '')),
	);
	const isIdempotent = isUnsafe !== true && (method === 'GET' || method === 'PUT' || method === 'DELETE');
	const isRepeatable = request.isRepeatable ?? isIdempotent;
	return requestPath(endpoint, { method, path: endpoint.prefix + path, isRepeatable, isKeyed }, request);
}

export async function requestPath(
	endpoint: Endpoint,
	target: Target,
	content: RequestContent,
): Promise<Success> {
	const wait = endpoint.onWait?.();
	try {
		return await repeated({ ...endpoint, wait }, target, content);
	} finally {
		wait?.end();
	}
}

async function repeated(
	endpoint: Endpoint & { wait: Wait | undefined },
	target: Target,
	content: RequestContent,
): Promise<Success> {
	const { method, path, isRepeatable } = target;
	const requested: Requested = { method, path, secrets: secretsOf(endpoint.token, content.body) };
	let waitedMs = 0;
	let wasUnclear = false;
	for (let tries = 1; ; tries++) {
		const tried = settled(await attempt(endpoint, content, requested), { target, wasUnclear });
		if (tried.kind === 'success' || (wasUnclear && isGone(tried, target))) {
			return { answer: tried.answer, requested };
		}
		if (tried.kind === 'refused' && tried.verdict === 'unprocessed' && content.call?.onThrottled === 'throw')
			throw wasUnclear ? unclear(tried.error) : tried.error;
		const random = endpoint.random();
		const wait = nextTry({ ...tried, tries, waitedMs, isRepeatable, retries: endpoint.retries, random });
		if (wait === null) throw wasUnclear && !isDefinite(tried) ? unclear(tried.error) : tried.error;
		wasUnclear ||= tried.verdict === 'unclear';
		endpoint.trace?.(`* again in ${wait} ms`);
		endpoint.wait?.again(tries, endpoint.retries);
		await sleep(wait, content.call?.signal);
		waitedMs += wait;
	}
}

/** After a DELETE whose outcome is unknown, a 404 says that it was carried out. */
function isGone(tried: Exclude<Attempt, { kind: 'success' }>, { method }: Target): tried is Refused {
	return method === 'DELETE' && tried.kind === 'refused' && tried.status === 404;
}

/** An answer to a repeatable request speaks for the earlier attempts too. */
function isDefinite(tried: Exclude<Attempt, { kind: 'success' }>): boolean {
	return tried.kind === 'refused' && tried.verdict === 'final';
}

/** The last attempt says nothing about an earlier one that may have been carried out. */
function unclear({ code, message, fields, http, retryAfterMs, cause }: ApiError): ApiError {
	return new ApiError(code, message, {
		cause,
		unanswered: true,
		...(fields !== null && { fields }),
		...(http !== null && { http }),
		...(retryAfterMs !== null && { retryAfterMs }),
	});
}

/**
 * A 409 for a key that was sent before: the earlier attempt still runs, and its answer is wanted
 * (api-decisions 29).
 */
function settled(tried: Attempt, { target, wasUnclear }: { target: Target; wasUnclear: boolean }): Attempt {
	const isStillRunning =
		target.isKeyed === true && wasUnclear && tried.kind === 'refused' && tried.status === 409;
	return isStillRunning ? { ...tried, verdict: 'unprocessed' } : tried;
}

interface Refused {
	kind: 'refused';
	answer: Answer;
	status: number;
	error: ApiError;
	verdict: Verdict;
	retryAfterMs: number | null;
}

type Attempt =
	| { kind: 'success'; answer: Answer }
	| Refused
	| { kind: 'lost'; error: ApiError; verdict: Verdict; retryAfterMs: null };

async function attempt(endpoint: Endpoint, content: RequestContent, requested: Requested): Promise<Attempt> {
	const { method, path, secrets } = requested;
	const target = path + (content.query ?? '');
	const body = encodeBody(content.body);
	endpoint.trace?.(`> ${method} ${quote(target, secrets)}`);
	try {
		const answer = await endpoint.transport.exchange({
			method,
			path: target,
			headers: headersOf(endpoint, content),
			body,
			timeoutMs: endpoint.timeoutMs + uploadMs(body),
			signal: content.call?.signal,
		});
		traceAnswer(endpoint, answer, secrets);
		return answered(endpoint, answer, requested);
	} catch (error) {
		if (error instanceof TransportFailure) return lost(endpoint, error);
		throw error;
	}
}

/** A second more for each 256 KiB of a file. */
function uploadMs(body: string | Uint8Array | null): number {
	return body instanceof Uint8Array ? Math.ceil((body.length / (256 * 1024)) * 1000) : 0;
}

function encodeBody(body: unknown): string | Uint8Array | null {
	if (body === undefined) return null;
	return body instanceof Uint8Array ? body : JSON.stringify(body);
}

function answered({ clock }: Endpoint, answer: Answer, requested: Requested): Attempt {
	const { status, headers } = answer;
	if (status >= 200 && status < 300) return { kind: 'success', answer };
	const nowMs = clock.now() / microsPerMs;
	const retryAfterMs = parseRetryAfter(headers[headerNames.retryAfter.toLowerCase()], nowMs);
	const error = errorOf(answer, requested, retryAfterMs);
	const verdict = verdictOf(status, retryAfterMs !== null);
	return { kind: 'refused', answer, status, error, verdict, retryAfterMs };
}

function lost(endpoint: Endpoint, failure: TransportFailure): Attempt {
	const error = toApiError(failure);
	endpoint.trace?.(`< nothing: ${failure.message}`);
	const ended = { kind: 'lost', error, retryAfterMs: null } as const;
	if (isPermanent(failure)) return { ...ended, verdict: 'final' };
	return { ...ended, verdict: failure.written ? 'unclear' : 'unprocessed' };
}

function headersOf({ token }: Endpoint, { body, headers }: RequestContent): Record<string, string> {
	return {
		Accept: 'application/json',
		'Accept-Encoding': 'gzip',
		'User-Agent': `mailctl/${__VERSION__}`,
		...(body !== undefined && {
			'Content-Type': body instanceof Uint8Array ? 'application/octet-stream' : 'application/json',
		}),
		...(token !== null && { [headerNames.token]: token }),
		...headers,
	};
}

export function traceAnswer(
	endpoint: Pick<Endpoint, 'trace'>,
	answer: Answer,
	secrets: readonly string[],
): void {
	const { status, body, durationMs } = answer;
	endpoint.trace?.(`< ${status} in ${Math.round(durationMs)} ms, ${body.length} bytes`);
	if (status >= 400 && body.length > 0)
		endpoint.trace?.(`< ${quote(body.toString('utf8', 0, 16_384), secrets)}`);
}

/** A longer wait fails immediately. */
const maxPatienceMs = 60_000;
const pauses = { first: 250, longest: 8_000 };

/**
 * `unprocessed`: the service did nothing, or was not reached. `unclear`: the request may have been carried
 * out.
 */
type Verdict = 'unprocessed' | 'unclear' | 'final';

interface Tried {
	verdict: Verdict;
	retryAfterMs: number | null;
	tries: number;
	retries: number;
	waitedMs: number;
	isRepeatable: boolean;
	random: number;
}

function nextTry(tried: Tried): number | null {
	if (tried.tries > tried.retries || tried.verdict === 'final') return null;
	if (tried.verdict === 'unclear' && !tried.isRepeatable) return null;
	const pause = backoff(pauses, tried.tries);
	// Many clients should not return at the same moment.
	const own = pause / 2 + (pause / 2) * tried.random;
	const wait = tried.retryAfterMs === null ? own : Math.max(tried.retryAfterMs, own);
	return tried.waitedMs + wait > maxPatienceMs ? null : Math.round(wait);
}

function verdictOf(status: number, hasRetryAfter: boolean): Verdict {
	if (status === 429 || (status === 503 && hasRetryAfter)) return 'unprocessed';
	// 501 and 505 do not change.
	return status >= 500 && status !== 501 && status !== 505 ? 'unclear' : 'final';
}
