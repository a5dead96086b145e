/** How fast a deployment is called: so many requests at a time, and when it throttles one, all of them wait. */
import { ApiError } from '../../api/errors.js';

/** Milliseconds; rejects with the signal's reason when that is aborted. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

export interface Pace {
	/**
	 * One request. Throttled (429, or 503 with Retry-After: not processed), it is made again after a pause that holds up
	 * all others too; the client's own repeats came before, and go on competing with each other.
	 */
	call<T>(request: () => Promise<T>): Promise<T>;
}

/** Pauses of one request before the service's word is taken for final. */
const maxPauses = 3;
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;

export function createPace(options: { sleep: Sleep; signal?: AbortSignal }): Pace {
	let pause: Promise<void> | null = null;
	const begin = (ms: number) => {
		pause ??= options.sleep(ms, options.signal).finally(() => {
			pause = null;
		});
		return pause;
	};
	return {
		call: async (request) => {
			for (let pauses = 0; ; pauses += 1) {
				if (pause !== null) await pause;
				try {
					return await request();
				} catch (error) {
					if (!isThrottled(error) || pauses === maxPauses) throw error;
					await begin(Math.min(longestPauseMs, error.retryAfterMs ?? firstPauseMs * 2 ** pauses));
				}
			}
		},
	};
}

function isThrottled(error: unknown): error is ApiError {
	if (!(error instanceof ApiError)) return false;
	return error.code === 'throttled' || (error.code === 'unavailable' && error.retryAfterMs !== null);
}

/**
 * Works on 0 … count - 1, begun in this order, `width` at a time. After a failure nothing new begins, what runs is
 * waited for, and the failure of the lowest number is thrown.
 */
export async function inOrder(
	count: number,
	width: number,
	work: (index: number) => Promise<void>,
): Promise<void> {
	const failures = new Map<number, unknown>();
	let next = 0;
	const lane = async () => {
		while (next < count && failures.size === 0) {
			const index = next;
			next += 1;
			await work(index).catch((error: unknown) => failures.set(index, error));
		}
	};
	await Promise.all(Array.from({ length: Math.min(width, count) }, lane));
	if (failures.size > 0) throw failures.get(Math.min(...failures.keys()));
}
