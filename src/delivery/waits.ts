/** How a run without an end waits: for a mail server, for the store, or for a person who paused the queue. */
import type { Breaker, Stop } from './breaker.js';
import type { WorkerEvent } from './worker.js';

export interface Waits {
	/** Until the time is up, the fault is over, or somebody pauses the queue. */
	forServer(wait: { reason: string; ms: number }): Promise<void>;
	/** A store that fails: 1 s, doubling to 5 min from one time to the next. */
	forStore(reason: string): Promise<void>;
	/** The store has taken something: the next wait for it is short again. */
	stored(): void;
	/** Until somebody resumes. */
	forPerson(reason: string): Promise<void>;
}

export interface WaitOptions {
	breaker: Breaker;
	/** Sooner back when the run is to stop, or has something new to do. */
	sleep: (ms: number) => Promise<void>;
	isAborted: () => boolean;
	onEvent: ((event: WorkerEvent) => void) | undefined;
}

/** How often it looks whether somebody has paused the queue, or resumed it. */
export const watchMs = 1_000;

const firstStoreWaitMs = 1_000;
const longestStoreWaitMs = 300_000;

/**
 * For one run. Nothing here rejects; every wait ends when the run is to stop, and is told to `onEvent` when it begins.
 */
export function createWaits({ breaker, sleep, isAborted, onEvent }: WaitOptions): Waits {
	/** A store that cannot be read changes nothing about why we wait. */
	const standing = (): Promise<Stop['kind'] | null | 'unknown'> =>
		breaker.look().then(
			(stop) => stop?.kind ?? null,
			() => 'unknown',
		);
	let storeWaitMs = firstStoreWaitMs;
	return {
		async forStore(reason) {
			const ms = storeWaitMs;
			storeWaitMs = Math.min(2 * ms, longestStoreWaitMs);
			onEvent?.({ kind: 'waiting', reason, ms });
			await sleep(ms);
		},
		stored() {
			storeWaitMs = firstStoreWaitMs;
		},
		async forServer({ reason, ms }) {
			onEvent?.({ kind: 'waiting', reason, ms });
			for (let left = ms; left > 0 && !isAborted(); left -= watchMs) {
				await sleep(Math.min(left, watchMs));
				const stands = await standing();
				if (stands === null || stands === 'held') return;
			}
		},
		async forPerson(reason) {
			onEvent?.({ kind: 'held', reason });
			do await sleep(watchMs);
			while (!isAborted() && isHolding(await standing()));
		},
	};
}

function isHolding(stands: Stop['kind'] | null | 'unknown'): boolean {
	return stands === 'held' || stands === 'unknown';
}
