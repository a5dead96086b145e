/** One operation of the table as requests: address, headers, tries, trace. What the answer holds is the caller's. */
import type { Call } from '../../api/api.js';
import { type Clock, microsPerMs } from '../../api/datetime.js';
import type { ApiError } from '../../api/errors.js';
import { headerNames } from '../errors.js';
import { type Operation, pathOf, type Route, routes } from '../routes.js';
import { isPermanent, TransportFailure, toApiError } from './failure.js';
import { quote, secretsOf } from './quote.js';
import { type Asked, refusalOf } from './refusals.js';
import { nextTry, parseRetryAfter, type Verdict, verdictOf } from './retry.js';
import type { Answer, Transport } from './transport.js';
import { pause } from './wait.js';

declare const __VERSION__: string;

/** What every call of a client shares. */
export interface Line {
	transport: Transport;
	/** Path of the base URL, without a slash at its end. */
	prefix: string;
	token: string | null;
	timeoutMs: number;
	retries: number;
	trace: (line: string) => void;
	random: () => number;
	clock: Clock;
}

/** One operation to be carried out. */
export interface Ask {
	operation: Operation;
	/** For the path. */
	values?: Readonly<Record<string, string | number>>;
	/** With its `?`, or empty. */
	query?: string;
	body?: unknown;
	headers?: Readonly<Record<string, string>>;
	call?: Call | undefined;
	/** Overrides what the method says. */
	isRepeatable?: boolean;
}

/** A 2xx, and what was asked, for complaints about it. */
export interface Success {
	answer: Answer;
	asked: Asked;
	/** It was answered as gone after an earlier try whose outcome nobody knew: so that one did it. */
	isAlreadyGone: boolean;
}

/** Throws `ApiError`, and the signal's reason. */
export async function send(line: Line, ask: Ask): Promise<Success> {
	const route: Route = routes[ask.operation];
	const path = line.prefix + pathOf(ask.operation, ask.values);
	const asked: Asked = { method: route.method, path, secrets: secretsOf(line.token, ask.body) };
	const isRepeatable = ask.isRepeatable ?? isRepeatableRoute(route);
	let waitedMs = 0;
	let wasUnclear = false;
	for (let tries = 1; ; tries++) {
		const tried = settled(await tryOnce(line, ask, asked), { ask, wasUnclear });
		if (tried.kind === 'success') return { answer: tried.answer, asked, isAlreadyGone: false };
		if (wasUnclear && route.method === 'DELETE' && tried.status === 404)
			return { answer: tried.answer, asked, isAlreadyGone: true };
		const wait = nextTry({
			...tried,
			tries,
			waitedMs,
			isRepeatable,
			retries: line.retries,
			random: line.random(),
		});
		if (wait === null) throw tried.error;
		wasUnclear ||= tried.verdict === 'unclear';
		line.trace(`* again in ${wait} ms`);
		await pause(wait, ask.call?.signal);
		waitedMs += wait;
	}
}

/** A 409 for a key we sent before: the earlier try is still at work (api-decisions 29), and its answer is what we want. */
function settled(tried: Try, { ask, wasUnclear }: { ask: Ask; wasUnclear: boolean }): Try {
	const isStillRunning =
		ask.operation === 'send' && wasUnclear && tried.kind === 'refused' && tried.status === 409;
	return isStillRunning ? { ...tried, verdict: 'unprocessed' } : tried;
}

function isRepeatableRoute({ method, isUnsafe }: Route): boolean {
	return isUnsafe !== true && (method === 'GET' || method === 'PUT' || method === 'DELETE');
}

type Try =
	| { kind: 'success'; answer: Answer }
	| {
			kind: 'refused';
			answer: Answer;
			status: number;
			error: ApiError;
			verdict: Verdict;
			retryAfterMs: number | null;
	  }
	| { kind: 'lost'; status: null; error: ApiError; verdict: Verdict; retryAfterMs: null };

async function tryOnce(line: Line, ask: Ask, asked: Asked): Promise<Try> {
	const { method, path, secrets } = asked;
	const query = ask.query ?? '';
	line.trace(`> ${method} ${quote(path + query, secrets)}`);
	const answer = await line.transport
		.exchange({
			method,
			path: path + query,
			headers: headersOf(line, ask),
			body: ask.body === undefined ? null : JSON.stringify(ask.body),
			timeoutMs: line.timeoutMs,
			signal: ask.call?.signal,
		})
		.catch((error: unknown) => {
			if (error instanceof TransportFailure) return error;
			throw error;
		});
	if (answer instanceof TransportFailure) return lost(line, answer);
	traceAnswer(line, answer, secrets);
	const { status } = answer;
	if (status >= 200 && status < 300) return { kind: 'success', answer };
	const nowMs = line.clock.now() / microsPerMs;
	const retryAfterMs = parseRetryAfter(answer.headers[headerNames.retryAfter.toLowerCase()], nowMs);
	const error = refusalOf(answer, asked, retryAfterMs);
	return {
		kind: 'refused',
		answer,
		status,
		error,
		verdict: verdictOf(status, retryAfterMs !== null),
		retryAfterMs,
	};
}

function lost(line: Line, failure: TransportFailure): Try {
	const error = toApiError(failure);
	line.trace(`< nothing: ${failure.message}`);
	const told = { kind: 'lost', status: null, error, retryAfterMs: null } as const;
	if (isPermanent(failure)) return { ...told, verdict: 'final' };
	return { ...told, verdict: failure.written ? 'unclear' : 'unprocessed' };
}

function headersOf({ token }: Line, { body, headers }: Ask): Record<string, string> {
	return {
		Accept: 'application/json',
		'Accept-Encoding': 'gzip',
		'User-Agent': `mailctl/${__VERSION__}`,
		...(body !== undefined && { 'Content-Type': 'application/json' }),
		...(token !== null && { [headerNames.token]: token }),
		...headers,
	};
}

/** A line for an answer, and its body where it is a complaint. */
export function traceAnswer(line: Pick<Line, 'trace'>, answer: Answer, secrets: readonly string[]): void {
	const { status, body, durationMs } = answer;
	line.trace(`< ${status} in ${Math.round(durationMs)} ms, ${body.length} bytes`);
	if (status >= 400 && body.length > 0) line.trace(`< ${quote(body.toString('utf8', 0, 16_384), secrets)}`);
}
