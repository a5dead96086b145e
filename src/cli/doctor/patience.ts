/** How long one question to another machine may take. */

/** Milliseconds; short enough that a machine that is silent does not hold up the report. */
const usualMs = 5_000;
/** Of mail servers: many keep strangers waiting before they greet them, and hang up on those who do not wait. */
export const mailServerMs = 15_000;

/** Ends with the run, or after its own time. Its reason is an error that says so. */
export function patient(signal: AbortSignal, ms = usualMs): AbortSignal {
	const controller = new AbortController();
	const late = () => controller.abort(new Error(`no answer within ${ms / 1_000} s`));
	// Not `AbortSignal.timeout`, whose error says that "the operation was aborted".
	setTimeout(late, ms).unref();
	return AbortSignal.any([signal, controller.signal]);
}

/** What an error says; one of several addresses that were tried speaks for all. */
export function saidBy(error: unknown): string {
	if (error instanceof AggregateError && error.errors.length > 0) return saidBy(error.errors[0]);
	return error instanceof Error ? error.message : String(error);
}
