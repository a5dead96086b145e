/** Requests of the checks: JSON both ways over the raw wire, with the waits a deployment asks for. */
import { backoff, parseRetryAfter } from '../../api/backoff.js';
import { type Clock, microsPerMs } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import { sleep } from '../../api/sleep.js';
import type { WireExchange, WireResponse } from '../../api/wire.js';

export interface Ask {
	method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
	path: string;
	body?: unknown;
	/** Replaces the connection's own token; null sends no token. */
	token?: string | null;
	retries?: number;
}

export interface Answer {
	method: string;
	path: string;
	status: number;
	headers: Readonly<Record<string, string>>;
	text: string;
	/** Undefined: the body is no JSON. */
	json: unknown;
}

export type Caller = (ask: Ask) => Promise<Answer>;

export interface CallerOptions {
	exchange: WireExchange;
	retries: number;
	/** Ends everything; changes that are under way have `changeGraceMs` more to be answered. */
	signal: AbortSignal;
	/** The connection's own token: never quoted, wherever a deployment repeats it. */
	token: string | null;
	clock: Clock;
}

/** Milliseconds. A cut POST may have been carried out: an answer is cheaper than a search for its record. */
const changeGraceMs = 2_000;
/** Longer waits are no wait but a refusal. */
const maxWaitMs = 60_000;
const pauses = { first: 200 };

/**
 * 429, and 503 with Retry-After, mean not processed and are repeated for every method; cuts only for GET, PUT and
 * DELETE. Another 5xx is not: a check is to find it. Throws `ApiError` network, and the signal's reason.
 */
export function createCaller({ exchange, retries, signal, token, clock }: CallerOptions): Caller {
	const once = async (ask: Ask): Promise<Answer | ApiError> => {
		try {
			return await exchangeJson(exchange, ask, signal);
		} catch (error) {
			signal.throwIfAborted();
			if (error instanceof ApiError && error.code === 'network' && isRepeatable(ask)) return error;
			throw error;
		}
	};
	const call: Caller = async (ask) => {
		for (let attempt = 0; ; attempt += 1) {
			signal.throwIfAborted();
			const answer = await once(ask);
			const waitMs = waitAfter(answer, attempt, clock);
			if (waitMs === null || attempt >= Math.min(retries, ask.retries ?? retries) || waitMs > maxWaitMs) {
				if (answer instanceof ApiError) throw answer;
				return withoutToken(answer, token);
			}
			await sleep(waitMs, signal);
		}
	};
	return call;
}

/** A signal that follows another one so much later; `stop` it when the work is done. */
export function delayed(signal: AbortSignal, ms: number): { signal: AbortSignal; stop: () => void } {
	const controller = new AbortController();
	let timer: NodeJS.Timeout | undefined;
	const arm = () => {
		timer = setTimeout(() => controller.abort(signal.reason), ms);
	};
	if (signal.aborted) arm();
	else signal.addEventListener('abort', arm, { once: true });
	return {
		signal: controller.signal,
		stop: () => {
			clearTimeout(timer);
			signal.removeEventListener('abort', arm);
		},
	};
}

async function exchangeJson(exchange: WireExchange, ask: Ask, signal: AbortSignal): Promise<Answer> {
	const patience = delayed(signal, ask.method === 'GET' ? 0 : changeGraceMs);
	try {
		const response = await exchange({
			method: ask.method,
			path: ask.path,
			headers: { accept: 'application/json', 'content-type': 'application/json' },
			...(ask.body !== undefined && { body: JSON.stringify(ask.body) }),
			...(ask.token !== undefined && { token: ask.token }),
			signal: patience.signal,
		});
		return answerOf(ask, response);
	} finally {
		patience.stop();
	}
}

function answerOf({ method, path }: Ask, { status, headers, body }: WireResponse): Answer {
	const text = new TextDecoder().decode(body);
	return { method, path, status, headers, text, json: parse(text) };
}

function parse(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

function isRepeatable({ method }: Ask): boolean {
	return method === 'GET' || method === 'PUT' || method === 'DELETE';
}

/** Milliseconds until the same may be asked again; null: this is the answer. */
function waitAfter(answer: Answer | ApiError, attempt: number, clock: Clock): number | null {
	const pause = backoff(pauses, attempt + 1);
	if (answer instanceof ApiError) return pause;
	const asked = answer.headers['retry-after'];
	const isUnprocessed = answer.status === 429 || (answer.status === 503 && asked !== undefined);
	if (!isUnprocessed) return null;
	return parseRetryAfter(asked, clock.now() / microsPerMs) ?? pause;
}

function withoutToken(answer: Answer, token: string | null): Answer {
	if (token === null || token.length < 4 || !answer.text.includes(token)) return answer;
	return { ...answer, text: answer.text.replaceAll(token, '********') };
}
