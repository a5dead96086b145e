/**
 * How a run waits: for a change, a turn at the rate, the end of a fault or a pause, and messages due later; and when it
 * ends.
 */
import { type Clock, type Micros, microsPerMs, microsPerSecond, steadyOf } from '../api/datetime.js';
import { stalledReason } from '../api/pauses.js';
import type { Reads } from '../store/store.js';
import type { Breaker, Stop } from './breaker.js';
import type { RunOptions, RunRequest, WorkerEvent } from './worker.js';

/** Wakes the loop of a run: by a change, or at a time that may come early. */
export interface WakeUp {
	/** Resolves at the next change of any kind. */
	change(): Promise<void>;
	changed(): void;
	/** Resolves after `ms`, or at `wake`. */
	sleep(ms: number): Promise<void>;
	/** Ends a sleep early; the sleeper checks its condition again. */
	wake(): void;
}

/** For one loop: of several that wait for a `change`, only the last is woken. `sleep` resolves early at its signal. */
export function createWakeUp(options: {
	sleep: (ms: number, signal: AbortSignal) => Promise<void>;
	isAborted: () => boolean;
}): WakeUp {
	let nap = new AbortController();
	let notify: (() => void) | null = null;
	const changed = () => {
		const waiting = notify;
		notify = null;
		waiting?.();
	};
	return {
		change: () =>
			new Promise((resolve) => {
				notify = resolve;
			}),
		changed,
		async sleep(ms) {
			nap = new AbortController();
			if (!options.isAborted()) await options.sleep(ms, nap.signal);
		},
		wake() {
			nap.abort();
			changed();
		},
	};
}

/** Waits of a run without an end: for a mail server, for the store, or for the end of a person's pause. */
export interface Idle {
	/** Until the time is up, the fault is over, or the queue is paused. */
	forServer(wait: { reason: string; ms: number }): Promise<void>;
	/** After a failure of the store: 1 s, doubling to 5 min from one time to the next. */
	forStore(error: unknown): Promise<void>;
	/** The store has accepted a write: the next wait for it is short again. */
	stored(): void;
	/** Until the queue is resumed. */
	forPerson(reason: string): Promise<void>;
}

export interface IdleOptions {
	breaker: Breaker;
	/** Resolves early when the run is to stop, or has new work. */
	sleep: (ms: number) => Promise<void>;
	isAborted: () => boolean;
	onEvent: ((event: WorkerEvent) => void) | undefined;
}

/** How often it checks whether the queue was paused or resumed. */
export const watchMs = 1_000;

const firstStoreWaitMs = 1_000;
const longestStoreWaitMs = 300_000;

/**
 * For one run. Nothing here rejects; every wait ends when the run is to stop, and is reported to `onEvent` when it
 * begins.
 */
export function createIdle({ breaker, sleep, isAborted, onEvent }: IdleOptions): Idle {
	/** A store that cannot be read does not change the reason for the wait. */
	const standing = (): Promise<Stop['kind'] | null | 'unknown'> =>
		breaker.look().then(
			(stop) => stop?.kind ?? null,
			() => 'unknown',
		);
	let storeWaitMs = firstStoreWaitMs;
	return {
		async forStore(error) {
			const ms = storeWaitMs;
			storeWaitMs = Math.min(2 * ms, longestStoreWaitMs);
			onEvent?.({ kind: 'waiting', reason: stalledReason(error), ms });
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

/** The events that a run still waits for, once nothing of its scope is due. */
export interface EndOfRun {
	/** Milliseconds until the next check is useful; null: the run is over. */
	waitMs(): Promise<number | null>;
	/** A message of the scope is due now. */
	isDue(): Promise<boolean>;
	/** Messages of the scope canceled so far; 0 where the scope is everything. */
	countCanceled(): Promise<number>;
}

/** How often an idle endless run polls for work: another process may have queued it. */
const pollMs = 1_000;
const longestWaitMs = 60_000;
/** A shorter wait for a limit is not reported. */
const worthTelling: Micros = 5 * microsPerSecond;

/** For the one run of `request`. Only reads, and rejects when the store does; `rate` is one more limit. */
export function createEndOfRun(options: {
	reads: Pick<Reads, 'nextDue' | 'nextTurn' | 'countMessages'>;
	clock: Clock;
	/** Messages a second; absent = no limit. */
	rate?: number;
	request: RunRequest;
	onEvent?: ((event: WorkerEvent) => void) | undefined;
}): EndOfRun {
	const { reads, clock, request, rate, onEvent } = options;
	const { scope, until } = request;
	/**
	 * A message leased by another process is not settled: that process is sending it, or died and its lease runs out. In a
	 * scope, a message queued for later is not either: a worker ended on it, and it waits a minute.
	 */
	const isSettled = async () => {
		if (until === 'settled' && scope === null) return true;
		const { leased = 0, queued = 0 } = await reads.countMessages({ scope });
		return leased + (until === 'idle' ? 0 : queued) === 0;
	};
	const msUntil = (at: Micros) => Math.min(Math.max((at - clock.now()) / microsPerMs, 10), longestWaitMs);
	let toldOf: Micros | null = null;
	const tellLimit = (turn: Micros) => {
		if (turn === toldOf || turn - clock.now() < worthTelling) return;
		toldOf = turn;
		onEvent?.({ kind: 'limited', until: turn });
	};
	return {
		async waitMs() {
			// A message held back by a limit is due: the run is not over before its turn.
			const pace = rate === undefined ? {} : { perSecond: rate };
			const turn = await reads.nextTurn({ scope, now: clock.now(), ...pace });
			if (turn !== null) {
				tellLimit(turn);
				return until === 'aborted' ? Math.min(msUntil(turn), pollMs) : msUntil(turn);
			}
			if (until === 'aborted') return pollMs;
			if (until !== 'drained') return (await isSettled()) ? null : pollMs;
			const due = await reads.nextDue({ scope });
			return due === null ? null : msUntil(due);
		},
		isDue: async () => ((await reads.nextDue({ scope })) ?? Number.POSITIVE_INFINITY) <= clock.now(),
		countCanceled: async () => (scope === null ? 0 : ((await reads.countMessages({ scope })).canceled ?? 0)),
	};
}

/** The time by which a run must be over, where it has one: nothing begins shortly before, nothing goes on after it. */
export interface Deadline {
	/** Too little time is left to begin a message. */
	readonly isNear: boolean;
	/** Milliseconds for messages in flight after the signal. */
	graceMs(): number;
	stop(): void;
}

/** The last part of a short run; others stop beginning messages one grace period before the end. */
const lastPart = 1 / 4;

/** For one run, from its beginning. Calls `onNear` once, where there is a deadline. */
export function createDeadline(
	{ clock, drainMs }: Pick<RunOptions, 'clock'> & { drainMs: number },
	{ leftMs }: Pick<RunRequest, 'leftMs'>,
	onNear: () => void,
): Deadline {
	if (leftMs === undefined) return { isNear: false, graceMs: () => drainMs, stop: () => {} };
	const endsAt = steadyOf(clock) + leftMs * microsPerMs;
	let isNear = false;
	const timer = setTimeout(
		() => {
			isNear = true;
			onNear();
		},
		leftMs - Math.min(drainMs, leftMs * lastPart),
	);
	return {
		get isNear() {
			return isNear;
		},
		graceMs: () => Math.max(0, Math.min(drainMs, (endsAt - steadyOf(clock)) / microsPerMs)),
		stop: () => clearTimeout(timer),
	};
}

/** Spaces sends: at most this many a second, without a burst after a pause. */
export interface Rate {
	/**
	 * Takes the next turn for this many messages and waits for it, however often a sleep ends early: a wake-up for new work
	 * must not shorten the wait.
	 */
	waitForTurn(messages: number): Promise<void>;
}

interface RateOptions {
	/** Messages a second. */
	rate?: number | undefined;
	clock: Clock;
	sleep: (ms: number) => Promise<void>;
	/** Nothing begins any more: a wait ends. */
	isOver: () => boolean;
}

/**
 * A token bucket that holds a tenth of a second's turns, so that a coarse timer does not lower the rate. Null: messages
 * leave as fast as they can.
 */
export function createRate({ rate, clock, sleep, isOver }: RateOptions): Rate | null {
	if (rate === undefined) return null;
	const spacing = microsPerSecond / rate;
	const saved = microsPerSecond / 10;
	let next: Micros = steadyOf(clock);
	return {
		waitForTurn: async (messages) => {
			const turn = Math.max(next, steadyOf(clock) - saved);
			next = turn + messages * spacing;
			for (let now = steadyOf(clock); now < turn && !isOver(); now = steadyOf(clock))
				await sleep((turn - now) / microsPerMs);
		},
	};
}
