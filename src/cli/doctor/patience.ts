/** How long one question to another machine may take. */

/** Milliseconds; short enough that a machine that is silent does not hold up the report. */
export const patienceMs = 5_000;

/** Ends with the run, or after its own time. Its reason is an error that says so. */
export function patient(signal: AbortSignal): AbortSignal {
	return AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
}

/** What an error says; one of several addresses that were tried speaks for all. */
export function saidBy(error: unknown): string {
	if (error instanceof AggregateError && error.errors.length > 0) return saidBy(error.errors[0]);
	if (error instanceof Error && error.name === 'TimeoutError')
		return `no answer within ${patienceMs / 1_000} s`;
	return error instanceof Error ? error.message : String(error);
}
