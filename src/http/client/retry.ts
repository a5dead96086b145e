/** When a call is tried again, and after how long. Pure: no clock, no sockets. */

/** A wait that is asked for and longer than this is not worth it: the command says so at once. */
export const maxPatienceMs = 60_000;
const firstBackoffMs = 250;
const maxBackoffMs = 8_000;

/**
 * How a try ended, as far as another one is concerned. `unprocessed`: the service says that it did nothing (429, or
 * 503 with Retry-After), or was never reached. `unclear`: it may have been carried out. `final`: so it is.
 */
export type Verdict = 'unprocessed' | 'unclear' | 'final';

/** A try that failed, and what has been tried and waited before. */
export interface Tried {
	verdict: Verdict;
	/** What the service asked to wait; null = nothing (usable). */
	retryAfterMs: number | null;
	/** Tries made so far, at least 1. */
	tries: number;
	/** Tries after the first. */
	retries: number;
	/** Waited so far within this call. */
	waitedMs: number;
	/** Doing it twice is doing it once. */
	isRepeatable: boolean;
	/** 0 ≤ x < 1. */
	random: number;
}

/** Milliseconds to wait before the next try, or null: no more of them. */
export function nextTry(tried: Tried): number | null {
	if (tried.tries > tried.retries || tried.verdict === 'final') return null;
	if (tried.verdict === 'unclear' && !tried.isRepeatable) return null;
	const backoff = Math.min(maxBackoffMs, firstBackoffMs * 2 ** (tried.tries - 1));
	// Half of it is chance, so that many clients do not come back in one moment.
	const own = backoff / 2 + (backoff / 2) * tried.random;
	const wait = tried.retryAfterMs === null ? own : Math.max(tried.retryAfterMs, own);
	return tried.waitedMs + wait > maxPatienceMs ? null : Math.round(wait);
}

/** How an answer that is no success ended. `hasRetryAfter`: it named a time to come back. */
export function verdictOf(status: number, hasRetryAfter: boolean): Verdict {
	if (status === 429 || (status === 503 && hasRetryAfter)) return 'unprocessed';
	// 501 and 505 are said for good.
	return status >= 500 && status !== 501 && status !== 505 ? 'unclear' : 'final';
}

/** Seconds or an HTTP date (RFC 9110 s.10.2.3) from `now`, both in milliseconds; null for anything else. */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | null {
	const text = header?.trim() ?? '';
	if (/^\d{1,15}$/.test(text)) return Number(text) * 1_000;
	// Only what begins with a day's name: Date.parse reads "-5" as a year.
	if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return null;
	const at = Date.parse(text);
	return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
