/**
 * Limits the rate of requests to a service. A throttled request waits at least as long as the service asks, up to five
 * minutes. If the service throttles over half of the recent requests, all requests wait. Otherwise only the throttled
 * request waits, because some services throttle at random.
 */

import type { Call } from '../api/api.js';
import { backoff, sleep } from '../api/backoff.js';
import { ApiError } from '../api/errors.js';

export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

export interface Pause {
	ms: number;
	isAsked: boolean;
}

type Request<T> = (call: Call) => Promise<T>;

export interface PaceOptions {
	rowsPerSecond?: number;
	signal?: AbortSignal;
	sleep?: Sleep;
	nowMs?: () => number;
	onPause?: (pause: Pause) => void;
}

const patienceMs = 10 * 60_000;
const longestPauseMs = 5 * 60_000;
const weight = 0.2;
const tooMany = 0.5;
const pauses = { first: 250, longest: 16_000 };

type Kind = 'read' | 'write';

export class Pace {
	readonly #options: PaceOptions;
	#running = 0;
	#resting = 0;
	#pause: Promise<void> | null = null;
	#refusedShare = 0;
	#refused: Kind | null = null;
	#pauses = 0;
	#waitedMs = 0;
	#nextRowMs = 0;

	constructor(options: PaceOptions) {
		this.#options = options;
	}

	read<T>(request: Request<T>): Promise<T> {
		return this.#make(request, 'read');
	}

	/** Retries only after 429, or 503 with Retry-After. After any other failure, the service may have done the write. */
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
				await this.#slowDown(error, kind);
				const mayRepeat = kind === 'read' || isThrottled(error);
				if (!mayRepeat || this.#waitedMs > patienceMs) throw error;
			} finally {
				this.#running -= 1;
			}
		}
	}

	async #enter(): Promise<void> {
		while (this.#pause !== null) await this.#pause;
		this.#running += 1;
	}

	#gotThrough(kind: Kind): void {
		this.#refusedShare *= 1 - weight;
		// After a refused write, an answered read does not prove that the service has recovered.
		if (this.#refused === 'write' && kind === 'read') return;
		this.#refused = null;
		this.#pauses = 0;
		this.#waitedMs = 0;
	}

	async #slowDown({ retryAfterMs }: ApiError, kind: Kind): Promise<void> {
		if (this.#refused !== 'write') this.#refused = kind;
		this.#refusedShare += (1 - this.#refusedShare) * weight;
		if (this.#pause !== null) return;
		const own = backoff(pauses, this.#pauses + 1);
		const ms = Math.min(longestPauseMs, Math.max(retryAfterMs ?? 0, own));
		this.#pauses += 1;
		this.#waitedMs += ms;
		const pause = { ms, isAsked: ms === retryAfterMs };
		if (this.#refusedShare <= tooMany) return this.#rest(pause);
		this.#options.onPause?.(pause);
		this.#pause = this.#sleep(ms).finally(() => {
			this.#pause = null;
		});
		// Requests that wait in `#enter` throw this error. If no request waits, the rejection would be unhandled.
		this.#pause.catch(() => undefined);
	}

	async #rest(pause: Pause): Promise<void> {
		this.#resting += 1;
		if (this.#resting === this.#running) this.#options.onPause?.(pause);
		await this.#sleep(pause.ms).finally(() => {
			this.#resting -= 1;
		});
	}

	#sleep(ms: number): Promise<void> {
		const { sleep: wait = sleep, signal } = this.#options;
		return wait(ms, signal);
	}
}

export function isBusy({ code, http }: ApiError): boolean {
	return code === 'throttled' || code === 'unavailable' || http?.status === 502 || http?.status === 504;
}

function isThrottled({ code, retryAfterMs, unanswered }: ApiError): boolean {
	return !unanswered && (code === 'throttled' || (code === 'unavailable' && retryAfterMs !== null));
}

/** After a failure, starts no further work, waits for running work, and throws the failure with the lowest index. */
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
