/** The sending worker: leases due messages, delivers them on the pool, and records what became of them. */

import { setTimeout as delay } from 'node:timers/promises';
import type { MessageScope } from '../api/capabilities.js';
import type { Clock, Micros } from '../api/datetime.js';
import type { DeliveryCounts } from '../api/delivery-counts.js';
import type { Uuid } from '../api/records.js';
import type { Queue } from '../store/queue.js';
import type { Reads } from '../store/store.js';
import { type ComposerOptions, createComposer } from './composer.js';
import type { SmtpPool } from './pool.js';
import { createRun } from './run.js';

export interface RunRequest {
	/** `null`: every message of the database. */
	scope: MessageScope | null;
	/**
	 * `settled`: nothing is due now. `drained`: nothing waits at all, deferred ones have been waited for.
	 * `aborted`: until the signal; faults are waited out (1 s doubling to 5 min), those that other workers met too, and
	 * pauses until somebody resumes.
	 */
	until: 'settled' | 'drained' | 'aborted';
	/** Ends gracefully: no more leases, what is in flight gets 10 s, the rest goes back to the queue. */
	signal?: AbortSignal;
}

export interface RunResult {
	/**
	 * `paused`: login, TLS or connection fault, or a person's pause (`isHeldReason`); every message is back in the queue
	 * as it was.
	 */
	kind: 'done' | 'paused' | 'aborted';
	/** Why it is `paused`; else `null`. */
	reason: string | null;
	counts: DeliveryCounts;
}

/** Things worth a log line. */
export type WorkerEvent =
	| { kind: 'lost_lease'; message: Uuid; outcome: string }
	| { kind: 'waiting'; reason: string; ms: number }
	/** Somebody paused the queue: nothing is begun until it is resumed. */
	| { kind: 'held'; reason: string }
	/** Limits hold back all that is left until then. */
	| { kind: 'limited'; until: Micros }
	| { kind: 'renew_failed'; error: unknown };

export interface WorkerOptions extends ComposerOptions {
	queue: Queue;
	reads: Pick<Reads, 'getSubmission' | 'nextDue' | 'nextTurn' | 'countMessages' | 'queuePauses'>;
	pool: SmtpPool;
	clock: Clock;
	/** Names this process in the leases; unique. */
	owner: string;
	/** In [0, 1); spreads retries. */
	random: () => number;
	/** Conversations at once; as many as the pool's connections. 5. */
	connections?: number;
	/** Messages a second; absent = as fast as it goes. */
	rate?: number;
	/** How long a lease lasts, renewed at a third of it; 120,000. */
	leaseMs?: number;
	/** What a conversation in flight is given when the signal comes; 9,000. */
	drainMs?: number;
	/** Waits, or returns early when the signal comes. */
	sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
	onProgress?: (counts: Readonly<DeliveryCounts>) => void;
	onEvent?: (event: WorkerEvent) => void;
}

export interface Worker {
	/**
	 * One at a time. Rejects when the store fails: what was sent and not recorded then is sent again later, with the
	 * same Message-ID. The pool stays open; its owner closes it.
	 */
	run(request: RunRequest): Promise<RunResult>;
	/** Something new is due: an idle run looks at once. */
	wake(): void;
}

/** Does nothing before `run`. The pool and the store are closed after it, by their owner. */
export function createWorker(options: WorkerOptions): Worker {
	const composer = createComposer(options);
	const settings = {
		connections: 5,
		leaseMs: 120_000,
		// A second less than whoever stops us waits: what is cut must be recorded before the store is closed.
		drainMs: 9_000,
		sleep: sleepUntil,
		...options,
	};
	let wake: (() => void) | null = null;
	return {
		async run(request) {
			const run = createRun(settings, composer, request);
			wake = run.wake;
			try {
				return await run.finish();
			} finally {
				wake = null;
			}
		},
		wake: () => wake?.(),
	};
}

async function sleepUntil(ms: number, signal: AbortSignal): Promise<void> {
	// An abort is the end of the wait, not an error.
	await delay(ms, undefined, { signal }).catch(() => undefined);
}
