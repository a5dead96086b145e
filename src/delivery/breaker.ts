/**
 * Keeps a run from beginning messages during a person's pause or a fault of the mail server. Both are kept in the
 * database, so every process knows them, and the queue shows the reason.
 */
import { backoff } from '../api/backoff.js';
import { type Clock, type Micros, microsPerMs } from '../api/datetime.js';
import { heldReason } from '../api/pauses.js';
import type { Queue, QueuePause } from '../store/queue.js';
import type { Reads } from '../store/store.js';

export interface Breaker {
	/** A fault is recorded: one message at a time tests whether it is over. */
	readonly isProbing: boolean;
	/** Reads the current pauses. Null: go on. Rejects when the store does. */
	look(): Promise<Stop | null>;
	/** The mail server refuses all mail: records this for all workers. Returns the wait in milliseconds. Never rejects. */
	trip(reason: string): Promise<number>;
	/**
	 * A server gave a reply about a message: the fault is over. One that refuses the sender has to take a message
	 * (`isSent`) first.
	 */
	worked(isSent: boolean): void;
	/** The sender is refused. True: so often in a row that the queue pauses. Never rejects. */
	refused(reason: string): Promise<boolean>;
}

/** `held`: until it is resumed. `elsewhere`: another worker met a fault; the next try is in `ms`. */
export type Stop = { kind: 'held'; reason: string } | { kind: 'elsewhere'; reason: string; ms: number };

export interface BreakerOptions {
	queue: Pick<Queue, 'pause' | 'resume'>;
	reads: Pick<Reads, 'queuePauses'>;
	clock: Clock;
}

const waits = { first: 1_000, longest: 300_000 };

/** Refusals of the sender without a success between them (decision 45), of all processes together. */
const mostRefusals = 5;

/**
 * One for each run, which calls `look` before it begins and at times after. A fault that cannot be stored holds up this
 * run alone.
 */
export function createBreaker({ queue, reads, clock }: BreakerOptions): Breaker {
	let fault: QueuePause | null = null;
	/** A server has replied to this run since its last fault: faults of other workers are then ignored. */
	let hasWorked = false;
	let refusals = 0;
	let successes = 0;
	return {
		get isProbing() {
			return fault !== null;
		},
		async look() {
			const before = successes;
			const pauses = await reads.queuePauses();
			const manual = pauses.find(({ kind }) => kind === 'manual');
			fault = pauses.find(({ kind }) => kind === 'fault') ?? null;
			if (successes === before) refusals = pauses.find(({ kind }) => kind === 'refusal')?.faults ?? 0;
			if (manual !== undefined) return { kind: 'held', reason: heldReason(manual.reason) };
			const ms = ((fault?.retry_at ?? 0) - clock.now()) / microsPerMs;
			if (fault === null || hasWorked || ms <= 0) return null;
			return { kind: 'elsewhere', reason: fault.reason ?? '', ms: Math.min(ms, waits.longest) };
		},
		async trip(reason) {
			hasWorked = false;
			const now = clock.now();
			const faults = (fault?.faults ?? 0) + 1;
			const ms = waitMs(faults);
			const retry_at: Micros = now + ms * microsPerMs;
			fault = { kind: 'fault', reason, since: fault?.since ?? now, retry_at, faults };
			// Where the fault cannot be stored, this run still waits.
			await queue.pause({ kind: 'fault', reason, retry_at, now }).catch(() => undefined);
			return ms;
		},
		async refused(reason) {
			refusals += 1;
			const now = clock.now();
			const storing = queue
				.pause({ kind: 'refusal', reason, retry_at: null, now })
				.catch(() => ({ faults: 0 }));
			if (refusals >= mostRefusals) return true;
			const before = successes;
			const { faults } = await storing;
			if (successes === before) refusals = Math.max(refusals, faults);
			return refusals >= mostRefusals;
		},
		worked(isSent) {
			if (isSent) successes += 1;
			else if (refusals >= mostRefusals) return;
			hasWorked = true;
			if (fault === null && !(isSent && refusals > 0)) return;
			fault = null;
			if (isSent) refusals = 0;
			queue.resume({ kinds: isSent ? ['fault', 'refusal'] : ['fault'] }).catch(() => undefined);
		},
	};
}

/** 1 s, doubling to 5 min. */
function waitMs(faults: number): number {
	return backoff(waits, faults);
}
