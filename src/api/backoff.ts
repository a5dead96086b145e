interface Backoff {
	first: number;
	longest?: number;
}

export function backoff({ first, longest = Number.POSITIVE_INFINITY }: Backoff, failures: number): number {
	return Math.min(longest, first * 2 ** (failures - 1));
}

/** `Retry-After` contains seconds or an HTTP date (RFC 9110 s.10.2.3). Returns milliseconds, or null if invalid. */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | null {
	const text = header?.trim() ?? '';
	if (/^\d{1,15}$/.test(text)) return Number(text) * 1_000;
	// Requires the name of the weekday, because Date.parse reads "-5" as a year.
	if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return null;
	const wait = Date.parse(text) - nowMs;
	return Number.isNaN(wait) ? null : Math.max(0, wait);
}

export interface Wait {
	again(repetition: number, of: number): void;
	end(): void;
}

/** Returns a function that long loops await, to let the thread do other work every ten milliseconds. */
export function createTurns(): () => Promise<void> | undefined {
	let began = performance.now();
	return () =>
		performance.now() - began < 10
			? undefined
			: new Promise((resolve) =>
					setImmediate(() => {
						began = performance.now();
						resolve();
					}),
				);
}

export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
	return new Promise((resolve, reject) => {
		const stop = () => {
			clearTimeout(timer);
			reject(signal?.reason);
		};
		const timer = setTimeout(() => {
			signal?.removeEventListener('abort', stop);
			resolve();
		}, ms);
		if (signal?.aborted === true) stop();
		else signal?.addEventListener('abort', stop, { once: true });
	});
}
