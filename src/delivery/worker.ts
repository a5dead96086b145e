import { setTimeout as delay } from 'node:timers/promises';
import type { MessageScope } from '../api/capabilities.js';
import type { DeliveryCounts } from '../api/counts.js';
import type { Clock, Micros } from '../api/datetime.js';
import type { Uuid } from '../api/records.js';
import type { Queue, Reads } from '../store/operations.js';
import { Composer, type ComposerOptions } from './composer.js';
import { Run } from './run.js';
import { createSmtpCourier } from './smtp/courier.js';
import { type SmtpPool, usualConnections } from './smtp/pool.js';

export interface RunRequest {
	scope: MessageScope | null;
	/**
	 * `settled`: no message is due, and a scope has no queued or leased messages. `idle`: no message is due or leased.
	 * `drained`: no message waits, not even a deferred one. `aborted`: the signal ends the run; faults and pauses do not.
	 */
	until: 'settled' | 'idle' | 'drained' | 'aborted';
	/** Ends the run gracefully: leases no more, waits 9 s for messages in flight, and returns the others to the queue. */
	signal?: AbortSignal;
	/** Milliseconds until the signal at the latest. No message starts shortly before that. */
	leftMs?: number;
}

export interface RunResult {
	kind: 'done' | 'paused' | 'aborted';
	reason: string | null;
	counts: DeliveryCounts;
}

export type WorkerEvent =
	| { kind: 'lost_lease'; message: Uuid; outcome: string }
	| { kind: 'waiting'; reason: string; ms: number }
	| { kind: 'held'; reason: string }
	| { kind: 'limited'; until: Micros }
	| { kind: 'renew_failed'; error: unknown };

export interface RunOptions {
	queue: Queue;
	reads: Pick<Reads, 'nextDue' | 'nextTurn' | 'countMessages' | 'queuePauses' | 'revokedLeases'>;
	clock: Clock;
	owner: string;
	/** No other process works on the scopes of the runs (`Queue.lease`), and the rate applies to this process only. */
	alone?: true;
	connections?: number;
	rate?: number;
	leaseMs?: number;
	drainMs?: number;
	sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
	onProgress?: (counts: Readonly<DeliveryCounts>) => void;
	onEvent?: (event: WorkerEvent) => void;
}

export interface WorkerOptions extends ComposerOptions, RunOptions {
	reads: RunOptions['reads'] & ComposerOptions['reads'];
	queue: Queue;
	pool: Pick<SmtpPool, 'send' | 'halt' | 'abort'>;
	random: () => number;
}

export interface Worker {
	/** Rejects if the store fails. Messages without a recorded outcome are sent again with the same Message-ID. */
	run(request: RunRequest): Promise<RunResult>;
	wake(): void;
}

export function createWorker(options: WorkerOptions): Worker {
	const composer = new Composer(options);
	const settings = { ...runDefaults, ...options };
	let wake: (() => void) | null = null;
	return {
		async run(request) {
			const run = new Run(settings, createSmtpCourier({ ...settings, composer }), request);
			wake = () => run.wake();
			try {
				return await run.finish();
			} finally {
				wake = null;
			}
		},
		wake: () => wake?.(),
	};
}

export const runDefaults = {
	connections: usualConnections,
	leaseMs: 120_000,
	// `serve` and `worker` stop within 10 s, Docker's default. In the last second, outcomes of cut conversations are recorded.
	drainMs: 9_000,
	sleep: sleepUntil,
};

async function sleepUntil(ms: number, signal: AbortSignal): Promise<void> {
	await delay(ms, undefined, { signal }).catch(() => undefined);
}
