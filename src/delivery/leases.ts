import { type Micros, microsPerMs, steadyOf } from '../api/datetime.js';
import type { Uuid } from '../api/records.js';
import type { Fence, Leased } from '../store/queue.js';
import type { RunOptions } from './run.js';

type Options = Pick<RunOptions, 'queue' | 'owner' | 'clock' | 'onEvent'> & { leaseMs: number };

export class Leases {
	readonly #options: Options;
	readonly #held = new Map<Uuid, Fence & { end: Micros }>();
	readonly #waiting: Leased[] = [];

	constructor(options: Options) {
		this.#options = options;
	}

	get size(): number {
		return this.#held.size;
	}

	get waiting(): number {
		return this.#waiting.length;
	}

	get isNextTimed(): boolean {
		return this.#waiting[0]?.leave_by !== undefined;
	}

	/** Returns false if this run already holds the message. The new lease then replaces the old one. */
	take(leased: Leased, end: Micros): boolean {
		const { message, fence } = leased;
		const isNew = !this.#held.has(message);
		this.#held.set(message, { message, fence, end });
		if (isNew) this.#waiting.push(leased);
		return isNew;
	}

	sizeOfNext(most: number): number {
		const call = this.#waiting[0]?.call;
		if (call === undefined) return Math.min(1, this.#waiting.length);
		const end = this.#waiting.findIndex((one, index) => index === most || one.call !== call);
		return end === -1 ? this.#waiting.length : end;
	}

	hasWhole(most: number): boolean {
		const size = this.sizeOfNext(most);
		return size < this.#waiting.length || size === most || this.#waiting[0]?.call === undefined;
	}

	next(most: number): Leased[] {
		const now = steadyOf(this.#options.clock);
		return this.#waiting.splice(0, this.sizeOfNext(most)).filter((message) => this.#isOurs(message, now));
	}

	#isOurs({ message, leave_by }: Leased, now: Micros): boolean {
		// After the campaign's sending window closes, the lease expires, and the message waits for the next window.
		const isClosed = leave_by !== undefined && leave_by <= this.#options.clock.now();
		// If the machine slept for long, other workers may have leased the waiting messages.
		const isLost = !isClosed && (this.#held.get(message)?.end ?? 0) <= now;
		if (isClosed || isLost) this.#held.delete(message);
		if (isLost) this.#options.onEvent?.({ kind: 'lost_lease', message, outcome: 'not begun' });
		return !(isClosed || isLost);
	}

	putBack(message: Leased): void {
		this.#waiting.push(message);
	}

	waitingFences(): Fence[] {
		return this.#waiting.map(({ message }) => ({ message, fence: this.#held.get(message)?.fence ?? 0 }));
	}

	takeWaiting(some?: ReadonlySet<Uuid>): Leased[] {
		const all = this.#waiting.splice(0);
		if (some === undefined) return all;
		this.#waiting.push(...all.filter(({ message }) => !some.has(message)));
		return all.filter(({ message }) => some.has(message));
	}

	fenceOf(message: Uuid): number | undefined {
		return this.#held.get(message)?.fence;
	}

	forget(message: Uuid): void {
		this.#held.delete(message);
	}

	/** Uses the steady clock, because the machine's clock may change. */
	leaseEnd(): Micros {
		return steadyOf(this.#options.clock) + this.#options.leaseMs * microsPerMs;
	}

	/** Extends leases that have not ended, because a server may take 10 min to answer the final dot. */
	renew(): void {
		const { queue, owner, clock, leaseMs, onEvent } = this.#options;
		const leases = [...this.#held.values()].filter(({ end }) => end > steadyOf(clock));
		if (leases.length === 0) return;
		const end = this.leaseEnd();
		const now = clock.now();
		const fences = leases.map(({ message, fence }) => ({ message, fence }));
		queue.renew({ owner, fences, now, until: now + leaseMs * microsPerMs }).then(
			() => {
				for (const lease of leases) lease.end = end;
			},
			(error: unknown) => onEvent?.({ kind: 'renew_failed', error }),
		);
	}
}

export interface Slot {
	hold(bytes: number): void;
	leave(): void;
}

/** At most this many messages plus one per connection lack a stored outcome. After a crash, a run may resend these. */
const mostUnsettled = 100;
/** Maximum bytes of composed messages without an answer. A larger message is sent alone. */
const mostBytes = 16 * 1024 * 1024;
/**
 * Messages in flight per connection. With PIPELINING, one waits for its answer, one is written and one is ready. A fast
 * server accepts 1.3 times as many messages per second with a hundred in flight as with fifteen.
 */
const perConnection = { least: 3, most: 20 };
/** `InFlight` admits as many messages as the server answers in this time. A stop or pause waits for these answers. */
const aheadMs = 20;

export class InFlight {
	readonly #connections: number;
	readonly #nowMs: () => number;
	readonly #least: number;
	#room: number;
	#left = 0;
	#since: number;
	#inFlight = 0;
	#unknown = 0;
	#bytes = 0;
	/** The next message probably has this size too, because neighbours in the queue mostly belong to one campaign. */
	#lastBytes = mostBytes;

	constructor(connections: number, nowMs = () => performance.now()) {
		this.#connections = connections;
		this.#nowMs = nowMs;
		this.#least = perConnection.least * connections;
		this.#room = this.#least;
		this.#since = nowMs();
	}

	get inFlight(): number {
		return this.#inFlight;
	}

	/** `unsettled`: outcomes not recorded yet. `isTimed`: the message has a deadline, so few may be ahead of it. */
	isFree(unsettled: number, isTimed = false): boolean {
		if (this.#inFlight >= (isTimed ? this.#least : this.#room)) return false;
		if (unsettled + this.#inFlight >= mostUnsettled + this.#connections) return false;
		return this.#inFlight === 0 || this.#bytes + (this.#unknown + 1) * this.#lastBytes <= mostBytes;
	}

	enter(): Slot {
		this.#inFlight += 1;
		this.#unknown += 1;
		let held: number | null = null;
		return {
			hold: (size) => {
				held = size;
				this.#lastBytes = size;
				this.#bytes += size;
				this.#unknown -= 1;
			},
			leave: () => {
				this.#inFlight -= 1;
				this.#left += 1;
				if (this.#left >= this.#least) this.#look();
				if (held === null) this.#unknown -= 1;
				else this.#bytes -= held;
			},
		};
	}

	#look(): void {
		const now = this.#nowMs();
		const perWait = Math.floor((this.#left * aheadMs) / Math.max(1, now - this.#since));
		this.#room = Math.min(perConnection.most * this.#connections, Math.max(this.#least, perWait));
		this.#left = 0;
		this.#since = now;
	}
}
