/** One try of a call: request, answer, and what the answer means for another try. */
import { microsPerMs } from '../../api/datetime.js';
import type { ApiError } from '../../api/errors.js';
import { headerNames } from '../errors.js';
import { isPermanent, TransportFailure, toApiError } from './failure.js';
import type { Ask, Line } from './line.js';
import { quote } from './quote.js';
import { type Asked, refusalOf } from './refusals.js';
import { parseRetryAfter, type Verdict, verdictOf } from './retry.js';
import type { Answer } from './transport.js';

declare const __VERSION__: string;

/** An answer that is no success. */
export interface Refused {
	kind: 'refused';
	answer: Answer;
	status: number;
	error: ApiError;
	verdict: Verdict;
	retryAfterMs: number | null;
}

/** How one try ended; `verdict` says whether another one may follow. */
export type Try =
	| { kind: 'success'; answer: Answer }
	| Refused
	| { kind: 'lost'; error: ApiError; verdict: Verdict; retryAfterMs: null };

/** One request. Throws the signal's reason, and nothing else that was foreseen. */
export async function attempt(line: Line, ask: Ask, asked: Asked): Promise<Try> {
	const { method, path, secrets } = asked;
	const target = path + (ask.query ?? '');
	line.trace(`> ${method} ${quote(target, secrets)}`);
	try {
		const answer = await line.transport.exchange({
			method,
			path: target,
			headers: headersOf(line, ask),
			body: ask.body === undefined ? null : JSON.stringify(ask.body),
			timeoutMs: line.timeoutMs,
			signal: ask.call?.signal,
		});
		traceAnswer(line, answer, secrets);
		return answered(line, answer, asked);
	} catch (error) {
		if (error instanceof TransportFailure) return lost(line, error);
		throw error;
	}
}

function answered({ clock }: Line, answer: Answer, asked: Asked): Try {
	const { status, headers } = answer;
	if (status >= 200 && status < 300) return { kind: 'success', answer };
	const nowMs = clock.now() / microsPerMs;
	const retryAfterMs = parseRetryAfter(headers[headerNames.retryAfter.toLowerCase()], nowMs);
	const error = refusalOf(answer, asked, retryAfterMs);
	const verdict = verdictOf(status, retryAfterMs !== null);
	return { kind: 'refused', answer, status, error, verdict, retryAfterMs };
}

function lost(line: Line, failure: TransportFailure): Try {
	const error = toApiError(failure);
	line.trace(`< nothing: ${failure.message}`);
	const told = { kind: 'lost', error, retryAfterMs: null } as const;
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
