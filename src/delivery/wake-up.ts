import { type Clock, type Micros, microsPerMs, microsPerSecond, steadyOf } from '../api/datetime.js';
import type { RunOptions } from './worker.js';

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

/** A token bucket of a tenth of a second's turns: no burst after a pause; coarse timers keep the rate. */
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
