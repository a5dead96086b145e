import type { Call } from '../../api/api.js';
import { backoff, parseRetryAfter, sleep, type Wait } from '../../api/backoff.js';
import { type Clock, microsPerMs } from '../../api/datetime.js';
import type { ApiError } from '../../api/errors.js';
import type { Method } from '../../api/operations.js';
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

export interface Request {
	method: Method;
	path: string;
	query?: string;
	body?: unknown;
	headers?: Readonly<Record<string, string>>;
	call?: Call | undefined;
	isRepeatable: boolean;
	isKeyed?: boolean;
}

export interface Success {
	answer: Answer;
	requested: Requested;
}

const maxPatienceMs = 60_000;
const pauses = { first: 250, longest: 8_000 };

export async function sendRequest(endpoint: Endpoint, request: Request): Promise<Success> {
	const wait = endpoint.onWait?.();
	try {
		return await repeated(endpoint, request, wait);
	} finally {
		wait?.end();
	}
}

async function repeated(endpoint: Endpoint, request: Request, wait: Wait | undefined): Promise<Success> {
	const { method, isRepeatable, isKeyed, call } = request;
	const { token, prefix, retries, random, trace } = endpoint;
	const requested = { method, path: prefix + request.path, secrets: secretsOf(token, request.body) };
	let waitedMs = 0;
	let wasUnclear = false;
	for (let tries = 1; ; tries++) {
		const tried: { answer: Answer } | Failed = await attempt(endpoint, request, requested);
		const { answer } = tried;
		if (!('verdict' in tried)) return { answer: tried.answer, requested };
		// 404 is a success, because an earlier attempt probably deleted the record and its answer was lost.
		if (answer?.status === 404 && wasUnclear && method === 'DELETE') return { answer, requested };
		const { error, verdict }: Omit<Failed, 'answer'> = wasUnclear
			? afterUnclear(tried, isKeyed === true)
			: tried;
		if (answer !== null && verdict === 'unprocessed' && call?.onThrottled === 'throw') throw error;
		const mayRepeat = verdict === 'unprocessed' || (verdict === 'unclear' && isRepeatable);
		const pause = backoff(pauses, tries);
		const ms = Math.round(Math.max(error.retryAfterMs ?? 0, (pause / 2) * (1 + random())));
		if (!mayRepeat || tries > retries || waitedMs + ms > maxPatienceMs) throw error;
		wasUnclear ||= verdict === 'unclear';
		trace?.(`* trying again in ${ms} ms`);
		wait?.again(tries, retries);
		await sleep(ms, call?.signal);
		waitedMs += ms;
	}
}

interface Failed {
	answer: Answer | null;
	error: ApiError;
	/** `unprocessed`: the service did nothing, or was not reached. `unclear`: it may have processed the request. */
	verdict: 'unprocessed' | 'unclear' | 'final';
}

/** The service may have processed an earlier attempt. Unless this answer is final, marks the error `unanswered`. */
function afterUnclear({ answer, error, verdict }: Failed, isKeyed: boolean): Omit<Failed, 'answer'> {
	// A service may answer 409 while it still processes the earlier attempt with this key.
	if (isKeyed && answer?.status === 409)
		return { verdict: 'unprocessed', error: error.with({ unanswered: true }) };
	const isDefinite = answer !== null && verdict === 'final';
	return { verdict, error: isDefinite ? error : error.with({ unanswered: true }) };
}

async function attempt(
	endpoint: Endpoint,
	request: Request,
	{ method, path, secrets }: Requested,
): Promise<{ answer: Answer } | Failed> {
	const { query = '', call } = request;
	const body = encodeBody(request.body);
	const timeoutMs = endpoint.timeoutMs + uploadMs(body);
	const headers = headersOf(endpoint, request);
	try {
		const outgoing = { method, path: path + query, headers, body, timeoutMs, signal: call?.signal };
		const answer = await exchange(endpoint, outgoing, secrets);
		const { status } = answer;
		if (status >= 200 && status < 300) return { answer };
		const nowMs = endpoint.clock.now() / microsPerMs;
		const retryAfterMs = parseRetryAfter(answer.headers[headerNames.retryAfter.toLowerCase()], nowMs);
		const error = errorOf(answer, { method, path, secrets }, retryAfterMs);
		return { answer, error, verdict: verdictOf(status, retryAfterMs !== null) };
	} catch (error) {
		if (!(error instanceof TransportFailure)) throw error;
		const verdict = isPermanent(error) ? 'final' : error.written ? 'unclear' : 'unprocessed';
		return { answer: null, error: toApiError(error), verdict };
	}
}

function verdictOf(status: number, hasRetryAfter: boolean): Failed['verdict'] {
	if (status === 429 || (status === 503 && hasRetryAfter)) return 'unprocessed';
	// A retry would get 501 or 505 again.
	return status >= 500 && status !== 501 && status !== 505 ? 'unclear' : 'final';
}

function uploadMs(body: string | Uint8Array | null): number {
	return body instanceof Uint8Array ? Math.ceil((body.length / (256 * 1024)) * 1000) : 0;
}

function encodeBody(body: unknown): string | Uint8Array | null {
	if (body === undefined) return null;
	return body instanceof Uint8Array ? body : JSON.stringify(body);
}

function headersOf({ token }: Endpoint, { body, headers }: Request): Record<string, string> {
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
