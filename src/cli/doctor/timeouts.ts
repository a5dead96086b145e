/** How long one question to another machine may take. */

import { tlsReason } from '../../api/errors.js';

/** Milliseconds; short enough that a machine that is silent does not hold up the report. */
const usualMs = 5_000;
/** Of mail servers: many keep strangers waiting before they greet them, and hang up on those who do not wait. */
export const mailServerMs = 15_000;

/** See `CheckEnvironment.timeout`. */
export function timeoutAfter(
	signal: AbortSignal,
	{ ms: wantedMs = usualMs, atMostMs }: { ms: number | undefined; atMostMs: number },
): AbortSignal {
	const ms = Math.min(wantedMs, atMostMs);
	const controller = new AbortController();
	const late = () => controller.abort(new Error(`no answer within ${ms / 1_000} s`));
	// Not `AbortSignal.timeout`, whose error reads "the operation was aborted".
	setTimeout(late, ms).unref();
	return AbortSignal.any([signal, controller.signal]);
}

/** The text of an error; of several tried addresses the first error is enough. */
export function firstError(error: unknown): string {
	if (error instanceof AggregateError && error.errors.length > 0) return firstError(error.errors[0]);
	return error instanceof Error ? tlsReason(error.message) : String(error);
}
