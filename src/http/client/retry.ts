/** When a request is repeated, and after how long. Pure: no clock, no sockets. */
import { backoff } from '../../api/backoff.js';

/** A longer wait is not made: the call fails immediately. */
export const maxPatienceMs = 60_000;
const pauses = { first: 250, longest: 8_000 };

/**
 * The result of an attempt for the next one. `unprocessed`: the service says that it did nothing (429, or 503 with
 * Retry-After), or was not reached. `unclear`: the request may have been carried out. `final`: it was decided.
 */
export type Verdict = 'unprocessed' | 'unclear' | 'final';

/** An attempt that failed, and the attempts and waits before it. */
export interface Tried {
	verdict: Verdict;
	/** The wait that the service asked for; null = none, or an unusable one. */
	retryAfterMs: number | null;
	/** Attempts so far, at least 1. */
	tries: number;
	/** Attempts after the first. */
	retries: number;
	/** Waited so far within this call. */
	waitedMs: number;
	/** Repeating it has the same effect as doing it once. */
	isRepeatable: boolean;
	/** 0 ≤ x < 1. */
	random: number;
}

/** Milliseconds to wait before the next attempt, or null: there is none. */
export function nextTry(tried: Tried): number | null {
	if (tried.tries > tried.retries || tried.verdict === 'final') return null;
	if (tried.verdict === 'unclear' && !tried.isRepeatable) return null;
	const pause = backoff(pauses, tried.tries);
	// Half of it is random, so that many clients do not return at the same moment.
	const own = pause / 2 + (pause / 2) * tried.random;
	const wait = tried.retryAfterMs === null ? own : Math.max(tried.retryAfterMs, own);
	return tried.waitedMs + wait > maxPatienceMs ? null : Math.round(wait);
}

/** The verdict of an answer that is no success. `hasRetryAfter`: it names a time for the next attempt. */
export function verdictOf(status: number, hasRetryAfter: boolean): Verdict {
	if (status === 429 || (status === 503 && hasRetryAfter)) return 'unprocessed';
	// 501 and 505 do not change.
	return status >= 500 && status !== 501 && status !== 505 ? 'unclear' : 'final';
}
