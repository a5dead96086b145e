import type { Call } from '../../api/api.js';
import { backoff, parseRetryAfter, sleep, type Wait } from '../../api/backoff.js';
import { type Clock, microsPerMs } from '../../api/datetime.js';
import type { ApiError } from '../../api/errors.js';
import { type Method, type Operation, type OperationName, operations } from '../../api/operations.js';
import { quote, secretsOf } from '../../api/quote.js';
import { headerNames } from '../wire.js';
import { errorOf, isPermanent, type Requested, TransportFailure, toApiError } from './errors.js';
import type { Answer, Outgoing, Transport } from './transport.js';

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

interface Target {
	method: Method;
	path: string;
	isRepeatable: boolean;
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
	const { method, path, isRepeatable, isKeyed = false } = target;
	const requested: Requested = { method, path, secrets: secretsOf(endpoint.token, content.body) };
	let waitedMs = 0;
	let wasUnclear = false;
	for (let tries = 1; ; tries++) {
		const tried = await attempt(endpoint, content, requested);
		if ('answer' in tried) return { answer: tried.answer, requested };
		const { status, retryAfterMs } = tried;
		// An earlier attempt has deleted the record, but the answer to it was lost.
		if (wasUnclear && method === 'DELETE' && status === 404) return { answer: tried.refused, requested };
		const { error, verdict }: Judged = wasUnclear ? afterUnclear(tried, isKeyed) : tried;
		if (status !== null && verdict === 'unprocessed' && content.call?.onThrottled === 'throw') throw error;
		const mayRepeat = verdict === 'unprocessed' || (verdict === 'unclear' && isRepeatable);
		const pause = backoff(pauses, tries);
		// Add a random part, so that clients do not all retry at the same moment.
		const wait = Math.round(Math.max(retryAfterMs ?? 0, (pause / 2) * (1 + endpoint.random())));
		if (!mayRepeat || tries > endpoint.retries || waitedMs + wait > maxPatienceMs) throw error;
		wasUnclear ||= verdict === 'unclear';
		endpoint.trace?.(`* again in ${wait} ms`);
		endpoint.wait?.again(tries, endpoint.retries);
		await sleep(wait, content.call?.signal);
		waitedMs += wait;
	}
}

const maxPatienceMs = 60_000;
const pauses = { first: 250, longest: 8_000 };

/** `unprocessed`: the service did nothing, or was not reached. `unclear`: it may have processed the request. */
type Verdict = 'unprocessed' | 'unclear' | 'final';

interface Judged {
	error: ApiError;
	verdict: Verdict;
}

interface Failed extends Judged {
	retryAfterMs: number | null;
}

type Attempt =
	| { answer: Answer }
	| (Failed & { refused: Answer; status: number })
	| (Failed & { status: null });

/** The service may have processed an earlier attempt, whatever the last one returned. */
function afterUnclear(tried: Exclude<Attempt, { answer: Answer }>, isKeyed: boolean): Judged {
	// The earlier attempt still runs, so wait for its answer (api-decisions 29).
	const verdict = isKeyed && tried.status === 409 ? 'unprocessed' : tried.verdict;
	const isDefinite = tried.status !== null && verdict === 'final';
	return { verdict, error: isDefinite ? tried.error : tried.error.with({ unanswered: true }) };
}

async function attempt(endpoint: Endpoint, content: RequestContent, requested: Requested): Promise<Attempt> {
	const { method, path, secrets } = requested;
	const body = encodeBody(content.body);
	try {
		const answer = await exchange(
			endpoint,
			{
				method,
				path: path + (content.query ?? ''),
				headers: headersOf(endpoint, content),
				body,
				timeoutMs: endpoint.timeoutMs + uploadMs(body),
				signal: content.call?.signal,
			},
			secrets,
		);
		const { status, headers } = answer;
		if (status >= 200 && status < 300) return { answer };
		const nowMs = endpoint.clock.now() / microsPerMs;
		const retryAfterMs = parseRetryAfter(headers[headerNames.retryAfter.toLowerCase()], nowMs);
		const error = errorOf(answer, requested, retryAfterMs);
		return {
			refused: answer,
			status,
			error,
			retryAfterMs,
			verdict: verdictOf(status, retryAfterMs !== null),
		};
	} catch (error) {
		if (!(error instanceof TransportFailure)) throw error;
		const verdict = isPermanent(error) ? 'final' : error.written ? 'unclear' : 'unprocessed';
		return { status: null, error: toApiError(error), verdict, retryAfterMs: null };
	}
}

function verdictOf(status: number, hasRetryAfter: boolean): Verdict {
	if (status === 429 || (status === 503 && hasRetryAfter)) return 'unprocessed';
	// A retry does not change 501 or 505.
	return status >= 500 && status !== 501 && status !== 505 ? 'unclear' : 'final';
}

function uploadMs(body: string | Uint8Array | null): number {
	return body instanceof Uint8Array ? Math.ceil((body.length / (256 * 1024)) * 1000) : 0;
}

function encodeBody(body: unknown): string | Uint8Array | null {
	if (body === undefined) return null;
	return body instanceof Uint8Array ? body : JSON.stringify(body);
}

function headersOf({ token }: Endpoint, { body, headers }: RequestContent): Record<string, string> {
	return {
		...commonHeaders(token),
		'User-Agent': `mailctl/${__VERSION__}`,
		...(body !== undefined && {
			'Content-Type': body instanceof Uint8Array ? 'application/octet-stream' : 'application/json',
		}),
		...headers,
	};
}

export function commonHeaders(token: string | null): Record<string, string> {
	return {
		Accept: 'application/json',
		'Accept-Encoding': 'gzip',
		...(token !== null && { [headerNames.token]: token }),
	};
}

export async function exchange(
	{ transport, trace }: Endpoint,
	outgoing: Outgoing,
	secrets: readonly string[],
): Promise<Answer> {
	trace?.(`> ${outgoing.method} ${quote(outgoing.path, secrets)}`);
	try {
		const answer = await transport.exchange(outgoing);
		const { status, body, durationMs } = answer;
		trace?.(`< ${status} in ${Math.round(durationMs)} ms, ${body.length} bytes`);
		if (status >= 400 && body.length > 0) trace?.(`< ${quote(body.toString('utf8', 0, 16_384), secrets)}`);
		return answer;
	} catch (error) {
		if (error instanceof TransportFailure) trace?.(`< nothing: ${error.message}`);
		throw error;
	}
}
