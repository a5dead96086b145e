/**
 * How fast a deployment is called. So many requests at a time at most; one that is throttled waits as long as it is
 * asked to. When most of them are, all wait, and then go on with half as many at a time, one more for each round that
 * went well (additive increase, multiplicative decrease). To stop for a single one would cost a service that throttles
 * at random a second for every third row. One that throttles all the time is slow, and no failure: only when nothing
 * gets through is it given up.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Call } from '../../api/api.js';
import { ApiError } from '../../api/errors.js';

/** Milliseconds; rejects with the signal's reason when that is aborted. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

/** Hand the `Call` on: it says that the waiting is done here. */
export type Request<T> = (call: Call) => Promise<T>;

export interface Pace {
	/** One request that changes nothing: throttled (429) or refused as busy (503), it is made again after a pause. */
	read<T>(request: Request<T>): Promise<T>;
	/**
	 * One request that may change something: made again after 429, or 503 with Retry-After, which say that nothing was
	 * done. Any other 503 is thrown, as it may have been carried out; what comes next waits all the same.
	 */
	write<T>(request: Request<T>): Promise<T>;
	/** The next row's turn. */
	row(): Promise<void>;
}

export interface PaceOptions {
	/** Requests in flight at most; 1 unless given. */
	ceiling?: number;
	/** Rows a second at most. */
	rowsPerSecond?: number;
	signal?: AbortSignal;
	sleep?: Sleep;
	/** A clock of milliseconds that does not go back. */
	nowMs?: () => number;
	/** A pause begins, in which nothing is asked. */
	onPause?: (ms: number) => void;
}

/** Waited for so long without one request getting through, the service's word is taken for final. */
const patienceMs = 10 * 60_000;
/** Of one pause, whatever is asked for: an absurd wish is tried once more. */
const longestPauseMs = 5 * 60_000;
/** Of one answer in the share of those that are refused. */
const weight = 0.2;
/** From this share on it is the service that has too much, and not a request that had no luck. */
const tooMany = 0.5;
const firstBackoffMs = 250;
const longestBackoffMs = 16_000;

/**
 * For one job on one deployment, all of whose requests go through it. Rejects with what a request says, with the
 * signal’s reason, and with the last refusal when ten minutes of pauses let nothing through.
 */
export function createPace(options: PaceOptions): Pace {
	return new AdaptivePace(options);
}

type Kind = 'read' | 'write';

interface Asked {
	/** Of the requests begun, which. */
	number: number;
	kind: Kind;
}

class AdaptivePace implements Pace {
	readonly #options: PaceOptions;
	readonly #ceiling: number;
	/** Requests that may be in flight; a fraction is on its way to the next one. */
	#width: number;
	#running = 0;
	#queue: (() => void)[] = [];
	#pause: Promise<void> | null = null;
	/** Requests begun so far, and how many when the width was lowered: what was begun before says nothing new. */
	#begun = 0;
	#loweredAt = 0;
	/** Of the last answers, the newest weighing most. */
	#refusedShare = 0;
	/** Requests that wait in their places. */
	#resting = 0;
	/** What was refused since something of its kind got through. */
	#refused: Kind | null = null;
	/** Since then. */
	#pauses = 0;
	#waitedMs = 0;
	#nextRowMs = 0;

	constructor(options: PaceOptions) {
		this.#options = options;
		this.#ceiling = options.ceiling ?? 1;
		this.#width = this.#ceiling;
	}

	read<T>(request: Request<T>): Promise<T> {
		return this.#make(request, 'read');
	}

	write<T>(request: Request<T>): Promise<T> {
		return this.#make(request, 'write');
	}

	async row(): Promise<void> {
		const { rowsPerSecond, nowMs = () => performance.now() } = this.#options;
		if (rowsPerSecond === undefined) return;
		const now = nowMs();
		const turn = Math.max(now, this.#nextRowMs);
		this.#nextRowMs = turn + 1_000 / rowsPerSecond;
		if (turn > now) await this.#sleep(turn - now);
	}

	async #make<T>(request: Request<T>, kind: Kind): Promise<T> {
		for (;;) {
			await this.#enter();
			this.#begun += 1;
			const number = this.#begun;
			try {
				const answer = await request({ onThrottled: 'throw' });
				this.#gotThrough(kind);
				return answer;
			} catch (error) {
				if (!(error instanceof ApiError)) throw error;
				if (!isBusy(error)) {
					if (error.http !== null) this.#gotThrough(kind);
					throw error;
				}
				await this.#slowDown(error, { number, kind });
				const mayRepeat = kind === 'read' || isThrottled(error);
				if (!mayRepeat || this.#waitedMs > patienceMs) throw error;
			} finally {
				this.#leave();
			}
		}
	}

	async #enter(): Promise<void> {
		for (;;) {
			if (this.#pause !== null) await this.#pause;
			else if (this.#running < Math.floor(this.#width)) break;
			else await new Promise<void>((go) => this.#queue.push(go));
		}
		this.#running += 1;
	}

	#leave(): void {
		this.#running -= 1;
		for (const go of this.#queue.splice(0, Math.max(0, Math.floor(this.#width) - this.#running))) go();
	}

	#gotThrough(kind: Kind): void {
		this.#refusedShare *= 1 - weight;
		this.#width = Math.min(this.#ceiling, this.#width + 1 / this.#width);
		// A service that can be read and not written is not well yet.
		if (this.#refused === 'write' && kind === 'read') return;
		this.#refused = null;
		this.#pauses = 0;
		this.#waitedMs = 0;
	}

	/** Resolves when the request may be made again, or when all have to wait. */
	async #slowDown({ retryAfterMs }: ApiError, { number, kind }: Asked): Promise<void> {
		if (this.#refused !== 'write') this.#refused = kind;
		this.#refusedShare += (1 - this.#refusedShare) * weight;
		const isTooMuch = this.#refusedShare > tooMany;
		if (isTooMuch && number > this.#loweredAt) {
			this.#width = Math.max(1, this.#width / 2);
			this.#loweredAt = this.#begun;
		}
		if (this.#pause !== null) return;
		// Asked for no time at all, or for too little again and again: ours grows until something gets through.
		const own = Math.min(longestBackoffMs, firstBackoffMs * 2 ** this.#pauses);
		const ms = Math.min(longestPauseMs, Math.max(retryAfterMs ?? 0, own));
		this.#pauses += 1;
		this.#waitedMs += ms;
		if (!isTooMuch) return this.#rest(ms);
		this.#options.onPause?.(ms);
		this.#pause = this.#sleep(ms).finally(() => {
			this.#pause = null;
		});
		// Whoever waits is told; nobody may be waiting.
		this.#pause.catch(() => undefined);
	}

	async #rest(ms: number): Promise<void> {
		this.#resting += 1;
		if (this.#resting === this.#running) this.#options.onPause?.(ms);
		await this.#sleep(ms).finally(() => {
			this.#resting -= 1;
		});
	}

	#sleep(ms: number): Promise<void> {
		const { sleep = sleepFor, signal } = this.#options;
		return sleep(ms, signal);
	}
}

async function sleepFor(ms: number, signal?: AbortSignal): Promise<void> {
	// The timer's own error says "aborted"; the signal's reason says by whom.
	await wait(ms, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
}

/** The service has no time, or what stands before it does not reach it; whether it did something is another question. */
export function isBusy({ code, http }: ApiError): boolean {
	return code === 'throttled' || code === 'unavailable' || http?.status === 502 || http?.status === 504;
}

/** It says that nothing was done. */
function isThrottled({ code, retryAfterMs, unanswered }: ApiError): boolean {
	return !unanswered && (code === 'throttled' || (code === 'unavailable' && retryAfterMs !== null));
}

/**
 * Works on 0 … count - 1, begun in this order, `width` at a time. After a failure nothing new begins, what runs is
 * waited for, and the failure of the lowest number is thrown.
 */
export async function inOrder(
	count: number,
	width: number,
	work: (index: number) => Promise<void>,
): Promise<void> {
	const failures = new Map<number, unknown>();
	let next = 0;
	const lane = async () => {
		while (next < count && failures.size === 0) {
			const index = next;
			next += 1;
			await work(index).catch((error: unknown) => failures.set(index, error));
		}
	};
	await Promise.all(Array.from({ length: Math.min(width, count) }, lane));
	if (failures.size > 0) throw failures.get(Math.min(...failures.keys()));
}
