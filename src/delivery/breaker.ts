/**
 * What keeps a run from beginning anything: a person's pause, and faults of the mail server. Both are kept in the
 * database, so that every process knows, and who looks at the queue sees why.
 */
import { type Clock, type Micros, microsPerMs } from '../api/datetime.js';
import { heldReason } from '../api/pauses.js';
import type { Queue, QueuePause } from '../store/queue.js';
import type { Reads } from '../store/store.js';

export interface Breaker {
	/** A fault stands: one message at a time finds out whether it is over. */
	readonly isProbing: boolean;
	/** Reads what stands now. Null: go on. Rejects when the store does. */
	look(): Promise<Stop | null>;
	/** The mail server takes nothing: told to everybody. How long to wait, in milliseconds. Never rejects. */
	trip(reason: string): Promise<number>;
	/** A server has talked about a message: a fault that stood is over. */
	worked(): void;
}

/** `held`: until somebody resumes. `elsewhere`: another worker met a fault, and it is tried again in `ms`. */
export type Stop = { kind: 'held'; reason: string } | { kind: 'elsewhere'; reason: string; ms: number };

export interface BreakerOptions {
	queue: Pick<Queue, 'pause' | 'resume'>;
	reads: Pick<Reads, 'queuePauses'>;
	clock: Clock;
}

const firstWaitMs = 1_000;
const longestWaitMs = 300_000;

/**
 * One for a run, which calls `look` before it begins and at times after. A fault that cannot be written down holds up
 * this run alone.
 */
export function createBreaker({ queue, reads, clock }: BreakerOptions): Breaker {
	let fault: QueuePause | null = null;
	/** A server talked to this run since its last fault: what other workers meet is not believed then. */
	let hasWorked = false;
	return {
		get isProbing() {
			return fault !== null;
		},
		async look() {
			const pauses = await reads.queuePauses();
			const manual = pauses.find(({ kind }) => kind === 'manual');
			fault = pauses.find(({ kind }) => kind === 'fault') ?? null;
			if (manual !== undefined) return { kind: 'held', reason: heldReason(manual.reason) };
			const ms = ((fault?.retry_at ?? 0) - clock.now()) / microsPerMs;
			if (fault === null || hasWorked || ms <= 0) return null;
			return { kind: 'elsewhere', reason: fault.reason ?? '', ms: Math.min(ms, longestWaitMs) };
		},
		async trip(reason) {
			hasWorked = false;
			const now = clock.now();
			const faults = (fault?.faults ?? 0) + 1;
			const ms = waitMs(faults);
			const retry_at: Micros = now + ms * microsPerMs;
			fault = { kind: 'fault', reason, since: fault?.since ?? now, retry_at, faults };
			// Where it cannot be written down, this run waits all the same.
			await queue.pause({ kind: 'fault', reason, retry_at, now }).catch(() => undefined);
			return ms;
		},
		worked() {
			hasWorked = true;
			if (fault === null) return;
			fault = null;
			queue.resume({ kinds: ['fault'] }).catch(() => undefined);
		},
	};
}

/** 1 s, doubling to 5 min. */
function waitMs(faults: number): number {
	return Math.min(firstWaitMs * 2 ** Math.min(faults - 1, 20), longestWaitMs);
}
