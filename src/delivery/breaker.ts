/** Stops a run while somebody has paused the queue or the mail server has a fault. Stores faults for other workers. */
import { backoff } from '../api/backoff.js';
import { type Clock, type Micros, microsPerMs } from '../api/datetime.js';
import { heldReason } from '../api/pauses.js';
import type { Queue, Reads } from '../store/operations.js';
import type { QueuePause } from '../store/queue.js';

/** `held`: paused until somebody resumes the queue. `elsewhere`: another worker met a fault, and retries in `ms`. */
export type Stop = { kind: 'held'; reason: string } | { kind: 'elsewhere'; reason: string; ms: number };

interface BreakerOptions {
	queue: Pick<Queue, 'pause' | 'resume'>;
	reads: Pick<Reads, 'queuePauses'>;
	clock: Clock;
}

const waits = { first: 1_000, longest: 300_000 };

/**
 * The queue pauses after the server refuses the sender this many times in a row (api-decisions 45). The store counts
 * the refusals of all processes together.
 */
const mostRefusals = 5;

export class Breaker {
	readonly #options: BreakerOptions;
	#fault: QueuePause | null = null;
	/** The mail server has replied since this run's last fault, so faults of other workers do not stop this run. */
	#hasWorked = false;
	#refusals = 0;
	/**
	 * Counts this run's refusals and sent messages. If it changes during a read of the stored count, ignore that count.
	 */
	#outcomes = 0;
	/** Number of unfinished writes. The stored count may lack their outcomes. */
	#storing = 0;

	constructor(options: BreakerOptions) {
		this.#options = options;
	}

	get isProbing(): boolean {
		return this.#fault !== null;
	}

	async look(): Promise<Stop | null> {
		const before = this.#storing === 0 ? this.#outcomes : null;
		const pauses = await this.#options.reads.queuePauses();
		const find = (kind: QueuePause['kind']) => pauses.find((one) => one.kind === kind);
		const manual = find('manual');
		this.#fault = find('fault') ?? null;
		if (this.#outcomes === before) this.#refusals = find('refusal')?.faults ?? 0;
		if (manual !== undefined) return { kind: 'held', reason: heldReason(manual.reason) };
		const ms = ((this.#fault?.retry_at ?? 0) - this.#options.clock.now()) / microsPerMs;
		if (this.#fault === null || this.#hasWorked || ms <= 0) return null;
		return { kind: 'elsewhere', reason: this.#fault.reason ?? '', ms: Math.min(ms, waits.longest) };
	}

	async trip(reason: string): Promise<number> {
		this.#hasWorked = false;
		const now = this.#options.clock.now();
		const faults = (this.#fault?.faults ?? 0) + 1;
		const ms = backoff(waits, faults);
		const retry_at: Micros = now + ms * microsPerMs;
		this.#fault = { kind: 'fault', reason, since: this.#fault?.since ?? now, retry_at, faults };
		await this.#options.queue.pause({ kind: 'fault', reason, retry_at, now }).catch(() => undefined);
		return ms;
	}

	/** Returns true if the queue must pause. Never rejects. */
	async refused(reason: string): Promise<boolean> {
		this.#refusals += 1;
		this.#outcomes += 1;
		const { queue, clock } = this.#options;
		const storing = this.#store(queue.pause({ kind: 'refusal', reason, retry_at: null, now: clock.now() }));
		if (this.#refusals >= mostRefusals) return true;
		const before = this.#outcomes;
		const faults = (await storing)?.faults ?? 0;
		if (this.#outcomes === before) this.#refusals = Math.max(this.#refusals, faults);
		return this.#refusals >= mostRefusals;
	}

	/** A reply clears the fault. After five refusals of the sender, only a sent message (`isSent`) clears the fault. */
	worked(isSent: boolean): void {
		if (isSent) this.#outcomes += 1;
		else if (this.#refusals >= mostRefusals) return;
		this.#hasWorked = true;
		if (this.#fault === null && !(isSent && this.#refusals > 0)) return;
		this.#fault = null;
		if (isSent) this.#refusals = 0;
		const kinds = isSent ? (['fault', 'refusal'] as const) : (['fault'] as const);
		void this.#store(this.#options.queue.resume({ kinds }));
	}

	async #store<T>(work: Promise<T>): Promise<T | null> {
		this.#storing += 1;
		const result = await work.catch(() => null);
		this.#storing -= 1;
		return result;
	}
}
