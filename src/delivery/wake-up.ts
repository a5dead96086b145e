import { type Clock, type Micros, microsPerMs, microsPerSecond, steadyOf } from '../api/datetime.js';
import { stalledReason } from '../api/pauses.js';
import type { Reads } from '../store/store.js';
import type { Breaker, Stop } from './breaker.js';
import type { RunOptions, RunRequest, WorkerEvent } from './worker.js';

/** Wakes the loop of a run; of several waits for a change only the last is woken. */
export class WakeUp {
	readonly #sleep: Required<RunOptions>['sleep'];
	readonly #isAborted: () => boolean;
	#nap = new AbortController();
	#notify: (() => void) | null = null;

	constructor(sleep: Required<RunOptions>['sleep'], isAborted: () => boolean) {
		this.#sleep = sleep;
		this.#isAborted = isAborted;
	}

	change(): Promise<void> {
		return new Promise((resolve) => {
			this.#notify = resolve;
		});
	}

	changed(): void {
		const waiting = this.#notify;
		this.#notify = null;
		waiting?.();
	}

	async sleep(ms: number): Promise<void> {
		this.#nap = new AbortController();
		if (!this.#isAborted()) await this.#sleep(ms, this.#nap.signal);
	}

	wake(): void {
		this.#nap.abort();
		this.changed();
	}
}

interface IdleOptions {
	breaker: Breaker;
	sleep: (ms: number) => Promise<void>;
	isAborted: () => boolean;
	onEvent: ((event: WorkerEvent) => void) | undefined;
}

export const watchMs = 1_000;

const firstStoreWaitMs = 1_000;
const longestStoreWaitMs = 300_000;

export class Idle {
	readonly #options: IdleOptions;
	#storeWaitMs = firstStoreWaitMs;

	constructor(options: IdleOptions) {
		this.#options = options;
	}

	/** After a failure of the store: 1 s, doubling to 5 min from one time to the next. */
	async forStore(error: unknown): Promise<void> {
		const ms = this.#storeWaitMs;
		this.#storeWaitMs = Math.min(2 * ms, longestStoreWaitMs);
		this.#options.onEvent?.({ kind: 'waiting', reason: stalledReason(error), ms });
		await this.#options.sleep(ms);
	}

	stored(): void {
		this.#storeWaitMs = firstStoreWaitMs;
	}

	async forServer({ reason, ms }: { reason: string; ms: number }): Promise<void> {
		this.#options.onEvent?.({ kind: 'waiting', reason, ms });
		for (let left = ms; left > 0 && !this.#options.isAborted(); left -= watchMs) {
			await this.#options.sleep(Math.min(left, watchMs));
			const stands = await this.#standing();
			if (stands === null || stands === 'held') return;
		}
	}

	async forPerson(reason: string): Promise<void> {
		this.#options.onEvent?.({ kind: 'held', reason });
		for (;;) {
			await this.#options.sleep(watchMs);
			const stands = await this.#standing();
			if (this.#options.isAborted() || !(stands === 'held' || stands === 'unknown')) return;
		}
	}

	/** A store that cannot be read does not change the reason for the wait. */
	#standing(): Promise<Stop['kind'] | null | 'unknown'> {
		return this.#options.breaker.look().then(
			(stop) => stop?.kind ?? null,
			() => 'unknown',
		);
	}
}

const pollMs = 1_000;
const longestWaitMs = 60_000;
const worthTelling: Micros = 5 * microsPerSecond;

interface EndOptions extends Pick<RunOptions, 'clock' | 'rate' | 'onEvent'> {
	reads: Pick<Reads, 'nextDue' | 'nextTurn' | 'countMessages'>;
	request: RunRequest;
}

export class EndOfRun {
	readonly #options: EndOptions;
	#toldOf: Micros | null = null;

	constructor(options: EndOptions) {
		this.#options = options;
	}

	async waitMs(): Promise<number | null> {
		const { reads, clock, rate, request } = this.#options;
		const { scope, until } = request;
		// A message held back by a limit is due: the run is not over before its turn.
		const pace = rate === undefined ? {} : { perSecond: rate };
		const turn = await reads.nextTurn({ scope, now: clock.now(), ...pace });
		if (turn !== null) {
			this.#tellLimit(turn);
			return until === 'aborted' ? Math.min(this.#msUntil(turn), pollMs) : this.#msUntil(turn);
		}
		if (until === 'aborted') return pollMs;
		if (until !== 'drained') return (await this.#isSettled()) ? null : pollMs;
		const due = await reads.nextDue({ scope });
		return due === null ? null : this.#msUntil(due);
	}

	async isDue(): Promise<boolean> {
		const { reads, clock, request } = this.#options;
		const due = await reads.nextDue({ scope: request.scope });
		return due !== null && due <= clock.now();
	}

	async countCanceled(): Promise<number> {
		const { reads, request } = this.#options;
		const { scope } = request;
		return scope === null ? 0 : ((await reads.countMessages({ scope })).canceled ?? 0);
	}

	/** A leased message is being sent, or its lease runs out; a queued one of a scope may wait a minute. */
	async #isSettled(): Promise<boolean> {
		const { reads, request } = this.#options;
		const { scope, until } = request;
		if (until === 'settled' && scope === null) return true;
		const { leased = 0, queued = 0 } = await reads.countMessages({ scope });
		return leased + (until === 'idle' ? 0 : queued) === 0;
	}

	#msUntil(at: Micros): number {
		return Math.min(Math.max((at - this.#options.clock.now()) / microsPerMs, 10), longestWaitMs);
	}

	#tellLimit(turn: Micros): void {
		if (turn === this.#toldOf || turn - this.#options.clock.now() < worthTelling) return;
		this.#toldOf = turn;
		this.#options.onEvent?.({ kind: 'limited', until: turn });
	}
}

/** The last part of a short run; others stop beginning messages one grace period before the end. */
const lastPart = 1 / 4;

export class Deadline {
	readonly #clock: Clock;
	readonly #drainMs: number;
	readonly #endsAt: Micros | null = null;
	readonly #timer: NodeJS.Timeout | null = null;
	isNear = false;

	constructor(
		{ clock, drainMs }: Pick<RunOptions, 'clock'> & { drainMs: number },
		leftMs: number | undefined,
		onNear: () => void,
	) {
		this.#clock = clock;
		this.#drainMs = drainMs;
		if (leftMs === undefined) return;
		this.#endsAt = steadyOf(clock) + leftMs * microsPerMs;
		const near = () => {
			this.isNear = true;
			onNear();
		};
		this.#timer = setTimeout(near, leftMs - Math.min(drainMs, leftMs * lastPart));
	}

	graceMs(): number {
		if (this.#endsAt === null) return this.#drainMs;
		return Math.max(0, Math.min(this.#drainMs, (this.#endsAt - steadyOf(this.#clock)) / microsPerMs));
	}

	stop(): void {
		if (this.#timer !== null) clearTimeout(this.#timer);
	}
}

/** A token bucket of a tenth of a second's turns: no burst after a pause, for all coarse timers. */
export class Rate {
	readonly #perSecond: number;
	readonly #options: { clock: Clock; sleep: (ms: number) => Promise<void>; isOver: () => boolean };
	#next: Micros;

	constructor(
		perSecond: number,
		options: { clock: Clock; sleep: (ms: number) => Promise<void>; isOver: () => boolean },
	) {
		this.#perSecond = perSecond;
		this.#options = options;
		this.#next = steadyOf(options.clock);
	}

	/** However often a sleep ends early: a wake-up for new work must not shorten the wait. */
	async waitForTurn(messages: number): Promise<void> {
		const { clock, sleep, isOver } = this.#options;
		const turn = Math.max(this.#next, steadyOf(clock) - microsPerSecond / 10);
		this.#next = turn + messages * (microsPerSecond / this.#perSecond);
		for (let now = steadyOf(clock); now < turn && !isOver(); now = steadyOf(clock))
			await sleep((turn - now) / microsPerMs);
	}
}
