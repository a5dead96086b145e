import { setTimeout as delay } from 'node:timers/promises';
import { backoff } from '../api/backoff.js';
import type { MessageScope } from '../api/capabilities.js';
import { type DeliveryCounts, noDeliveries } from '../api/counts.js';
import { type Clock, type Micros, microsPerMs, microsPerSecond, steadyOf } from '../api/datetime.js';
import { stalledReason } from '../api/pauses.js';
import type { Uuid } from '../api/records.js';
import type { DeliveryOutcome } from '../engine/rules/outcomes.js';
import type { Queue, Reads } from '../store/operations.js';
import type { Fence, Leased, Settlement } from '../store/queue.js';
import { Breaker, type Stop } from './breaker.js';
import { Composer, type ComposerOptions } from './composer.js';
import type { Courier, Telling } from './courier.js';
import { Groups } from './groups.js';
import { Leases, type Slot } from './leases.js';
import { createSmtpCourier } from './smtp/courier.js';
import { type SmtpPool, usualConnections } from './smtp/pool.js';

interface RunRequest {
	scope: MessageScope | null;
	/**
	 * Says when the run ends. `settled`: no message is due, and no message of `scope` is queued or leased. `idle`: no
	 * message is due or leased. `drained`: no message waits, not even a deferred one. `aborted`: only the signal ends
	 * the run.
	 */
	until: 'settled' | 'idle' | 'drained' | 'aborted';
	/** After an abort, the run returns waiting messages to the queue, and waits up to 9 s for messages in flight. */
	signal?: AbortSignal;
	/** The time until the command's deadline, which aborts `signal`. Near the deadline, the run starts no message. */
	leftMs?: number;
}

interface RunResult {
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
	/** Only this process sends messages of the scope (`Queue.lease`), so `rate` limits only this process. */
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
			return run.finish().finally(() => {
				wake = null;
			});
		},
		wake: () => wake?.(),
	};
}

export const runDefaults = {
	connections: usualConnections,
	leaseMs: 120_000,
	// `serve` and `worker` stop within 10 s, Docker's default. The last second remains to store outcomes.
	drainMs: 9_000,
	sleep: (ms: number, signal: AbortSignal) => delay(ms, undefined, { signal }).catch(() => undefined),
};

const storeTries = 5;
const watchMs = 1_000;
const pollMs = 1_000;
const longestWaitMs = 60_000;
const storeWaits = { first: 1_000, longest: 300_000 };
const worthTelling: Micros = 5 * microsPerSecond;
/** In this last part of `leftMs`, a run starts no message. The part is at most `drainMs` long. */
const lastPart = 1 / 4;
/** Half of `mostUnsettled` in leases.ts, so that sending continues during a write. */
const groupOfOutcomes = { size: 50, ms: 50 };
const atOnce = { size: Number.POSITIVE_INFINITY, ms: 0, isParallel: true };

type Settings = RunOptions & Required<Pick<RunOptions, keyof typeof runDefaults>>;
type Fault = Stop | { kind: 'courier'; reason: string } | { kind: 'store'; error: unknown };
type Wait = Stop | { kind: 'store'; reason: string; ms: number };

export class Run {
	readonly #settings: Settings;
	readonly #courier: Courier;
	readonly #request: RunRequest;
	readonly #outcomes: Groups<Settlement, 'recorded' | 'lost_lease'>;
	readonly #rate: Rate | null;
	readonly #maxHeld: number;
	readonly #counts = noDeliveries();
	readonly #leases: Leases;
	readonly #breaker: Breaker;
	readonly #wakeUp: WakeUp;
	readonly #endsAt: Micros | null = null;
	readonly #nearTimer: NodeJS.Timeout | undefined;
	#isEndNear = false;
	#storeFailures = 0;
	#toldOf: Micros | null = null;
	#isLeasing = false;
	#isDry = false;
	/** True if the last lease returned only messages that this run already holds, so others may still be due. */
	#hasMore = false;
	#isPausing = false;
	#fault: Fault | null = null;

	constructor(settings: Settings, courier: Courier, request: RunRequest) {
		this.#settings = settings;
		this.#courier = courier;
		this.#request = request;
		this.#maxHeld = 2 * courier.leaseBatch + courier.mostUnderWay;
		this.#leases = new Leases(settings);
		this.#wakeUp = new WakeUp(settings.sleep, () => this.#isAborted);
		const { clock, rate, drainMs, queue } = settings;
		this.#rate = rate === undefined ? null : new Rate(rate, clock);
		const { leftMs } = request;
		if (leftMs !== undefined) {
			this.#endsAt = steadyOf(clock) + leftMs * microsPerMs;
			const near = () => {
				this.#isEndNear = true;
				this.#wakeUp.wake();
			};
			this.#nearTimer = setTimeout(near, leftMs - Math.min(drainMs, leftMs * lastPart));
		}
		this.#breaker = new Breaker(settings);
		this.#outcomes = new Groups({
			...(courier.settles === 'at_once' ? atOnce : groupOfOutcomes),
			write: (settlements) => {
				for (const one of settlements) one.fence = this.#leases.fenceOf(one.message) ?? one.fence;
				const gathers = courier.settles === 'at_once' && { gathers: true };
				const settling = queue.settle({ settlements, ...gathers });
				this.#fill(courier.leaseBatch);
				return settling;
			},
			written: (settlement, result = 'lost_lease') => {
				const fence = this.#leases.fenceOf(settlement.message);
				// This run leased the message again during the write, so repeat the outcome with the new fence.
				const isOurs = result === 'lost_lease' && fence !== undefined && fence !== settlement.fence;
				if (isOurs) this.#outcomes.push(settlement);
				else this.#onSettled(settlement, result);
			},
			onFault: (error) => this.#onFault({ kind: 'store', error }),
		});
	}

	wake(): void {
		this.#isDry = false;
		if (!this.#isPausing) this.#wakeUp.wake();
	}

	async finish(): Promise<RunResult> {
		const onAbort = () => this.#wakeUp.wake();
		const renewal = setInterval(() => this.#leases.renew(), this.#settings.leaseMs / 3);
		const watch = setInterval(() => {
			void this.#look();
			void this.#giveBackRevoked();
			// Look for new and due messages, which must not wait until a slow server answers.
			if (this.#isDry && this.#courier.window.inFlight > 0) this.wake();
		}, watchMs);
		this.#request.signal?.addEventListener('abort', onAbort);
		try {
			await this.#look();
			const canceledBefore = await this.#countCanceled();
			const result = await this.#loop();
			this.#counts.canceled = (await this.#countCanceled()) - canceledBefore;
			return result;
		} finally {
			clearInterval(renewal);
			clearInterval(watch);
			clearTimeout(this.#nearTimer);
			this.#request.signal?.removeEventListener('abort', onAbort);
		}
	}

	async #loop(): Promise<RunResult> {
		for (;;) {
			if (this.#isAborted) return this.#drain();
			if (this.#fault !== null) {
				const result = await this.#pause(this.#fault);
				if (result !== null) return result;
				continue;
			}
			if (this.#isEndNear) this.#releaseBuffer('drain');
			this.#fill(Math.max(2 * this.#settings.connections, this.#courier.mostTogether));
			if (this.#mayStart) {
				if (this.#rate !== null) await this.#awaitTurn(this.#rate);
				this.#startNext();
			} else if (this.#courier.window.inFlight > 0 || this.#isLeasing) await this.#wakeUp.change();
			else if (!(await this.#idle())) return this.#result('done', null);
		}
	}

	async #awaitTurn(rate: Rate): Promise<void> {
		rate.take(this.#leases.sizeOfNext(this.#courier.mostTogether));
		for (let ms = rate.leftMs; ms > 0 && !this.#isOver; ms = rate.leftMs) await this.#wakeUp.sleep(ms);
	}

	get #isAborted(): boolean {
		return this.#request.signal?.aborted ?? false;
	}

	get #mayStart(): boolean {
		const { window, mostTogether } = this.#courier;
		if (this.#leases.waiting === 0 || !(this.#isDry || this.#leases.hasWhole(mostTogether))) return false;
		if (this.#breaker.isProbing) return window.inFlight === 0;
		return window.isFree(this.#outcomes.unwritten, this.#leases.isNextTimed);
	}

	get #isOver(): boolean {
		return this.#isAborted || this.#fault !== null || this.#isEndNear;
	}

	get #isEndless(): boolean {
		return this.#request.until === 'aborted';
	}

	/** A manual pause stops every run. A fault that another worker met stops only endless runs. */
	async #look(): Promise<void> {
		if (this.#isPausing) return;
		const stop = await this.#breaker.look().catch(() => null);
		if (stop !== null && (stop.kind === 'held' || this.#isEndless)) this.#onFault(stop);
	}

	/**
	 * Leases messages in the background. A write of outcomes also calls `#fill`, because on SQLite both then share a
	 * commit.
	 */
	#fill(mostWaiting: number): void {
		const { leaseBatch, mostTogether } = this.#courier;
		const most = this.#breaker.isProbing && mostTogether === 1 ? 1 : this.#maxHeld;
		const room = Math.min(leaseBatch, most - this.#leases.size);
		if (this.#isOver || this.#isLeasing || this.#isDry || room <= 0 || this.#leases.waiting > mostWaiting)
			return;
		this.#isLeasing = true;
		this.#lease(room)
			.catch((error: unknown) => this.#onFault({ kind: 'store', error }))
			.finally(() => {
				this.#isLeasing = false;
				this.#wakeUp.changed();
			});
	}

	async #lease(max: number): Promise<void> {
		const { queue, owner, clock, rate, alone } = this.#settings;
		const now = clock.now();
		const until = now + this.#settings.leaseMs * microsPerMs;
		const end = this.#leases.leaseEnd();
		// The rate applies to all processes together: the store enforces it, and this process spreads its share over time.
		const pace = rate === undefined ? {} : { perSecond: rate };
		const how = alone ? { alone } : pace;
		const leased = await queue.lease({ owner, now, until, max, scope: this.#request.scope, ...how });
		const fresh = leased.filter((message) => this.#leases.take(message, end));
		this.#courier.expect(fresh);
		this.#isDry = fresh.length === 0;
		this.#hasMore = this.#isDry && leased.length > 0;
	}

	#startNext(): void {
		const group = this.#isOver ? [] : this.#leases.next(this.#courier.mostTogether);
		if (group.length > 0) void this.#deliver(group);
	}

	async #deliver(group: readonly Leased[]): Promise<void> {
		const slot = this.#courier.window.enter();
		const told = new Set<Uuid>();
		try {
			await this.#courier.deliver(group, this.#telling(slot, told));
		} catch (error) {
			for (const message of group) if (!told.has(message.message)) this.#leases.putBack(message);
			this.#onFault({ kind: 'store', error });
		} finally {
			slot.leave();
			this.#wakeUp.changed();
		}
	}

	#telling(slot: Slot, told: Set<Uuid>): Telling {
		return {
			settled: (message, outcome) => {
				told.add(message.message);
				this.#settle(message, outcome);
			},
			holds: (bytes) => {
				slot.hold(bytes);
				this.#wakeUp.changed();
			},
			worked: (isSent) => this.#breaker.worked(isSent),
			refused: (reason) =>
				void this.#breaker.refused(reason).then((isOver) => {
					if (isOver) this.#onFault({ kind: 'courier', reason });
				}),
			failed: (reason) => this.#onFault({ kind: 'courier', reason }),
		};
	}

	#settle({ message, fence }: Fence, outcome: DeliveryOutcome): void {
		this.#outcomes.push({ message, fence, at: this.#settings.clock.now(), outcome });
	}

	#onSettled({ message, outcome }: Settlement, result: 'recorded' | 'lost_lease'): void {
		this.#leases.forget(message);
		this.#storeFailures = 0;
		if (result === 'lost_lease')
			this.#settings.onEvent?.({ kind: 'lost_lease', message, outcome: outcome.kind });
		else if (outcome.kind !== 'released') {
			this.#counts[outcome.kind === 'suppressed' ? 'canceled' : outcome.kind] += 1;
			this.#settings.onProgress?.(this.#counts);
		}
		this.#wakeUp.changed();
	}

	#onFault(fault: Fault): void {
		this.#fault ??= fault;
		this.#wakeUp.wake();
	}

	async #idle(): Promise<boolean> {
		await this.#outcomes.flush().catch((error: unknown) => this.#onFault({ kind: 'store', error }));
		if (this.#leases.waiting > 0 || this.#isLeasing) return true;
		if (this.#hasMore) this.#isDry = false;
		this.#hasMore = false;
		if (this.#isDry) await this.#look();
		if (this.#fault !== null || !(this.#isDry || this.#isEndNear)) return true;
		// Near its end, this run starts no message. It only waits until other processes have sent the due messages.
		const isLeft = this.#isEndNear && (await this.#isDue());
		const waitMs = isLeft ? watchMs : await this.#waitMs();
		if (waitMs === null) return false;
		await this.#wakeUp.sleep(waitMs);
		this.#isDry = false;
		return true;
	}

	async #pause(fault: Fault): Promise<RunResult | null> {
		this.#isPausing = true;
		try {
			while (this.#courier.window.inFlight > 0 || this.#isLeasing) {
				if (this.#isAborted) return null;
				await this.#wakeUp.change();
			}
			const isMet = fault.kind === 'courier' || fault.kind === 'store';
			this.#releaseBuffer(isMet ? 'infrastructure' : 'drain');
			const failure = await this.#flushStubbornly(this.#isEndless ? 1 : storeTries);
			const cause: Fault = failure === null ? fault : { kind: 'store', error: failure.error };
			// Throw the store's error unchanged. It names the file and a fix, and the caller does not report it as a bug.
			if (cause.kind === 'store' && !this.#isEndless) throw cause.error;
			const wait = await this.#waitFor(cause);
			if (!this.#isEndless) return this.#result('paused', wait.reason);
			await this.#hold(wait);
			return null;
		} finally {
			this.#isPausing = false;
		}
	}

	async #waitFor(fault: Fault): Promise<Wait> {
		if (fault.kind === 'courier')
			return { kind: 'elsewhere', reason: fault.reason, ms: await this.#breaker.trip(fault.reason) };
		if (fault.kind !== 'store') return fault;
		this.#storeFailures += 1;
		const ms = backoff(storeWaits, this.#storeFailures);
		return { kind: 'store', reason: stalledReason(fault.error), ms };
	}

	/** If the store cannot be read, the reason for the pause still applies. */
	async #hold(wait: Wait): Promise<void> {
		const { kind, reason } = wait;
		this.#fault = null;
		const left = kind === 'held' ? Number.POSITIVE_INFINITY : wait.ms;
		this.#settings.onEvent?.(kind === 'held' ? { kind, reason } : { kind: 'waiting', reason, ms: left });
		for (let ms = left; ms > 0 && !this.#isAborted; ms -= watchMs) {
			await this.#wakeUp.sleep(kind === 'store' ? ms : Math.min(ms, watchMs));
			if (kind === 'store') break;
			const stands = await this.#breaker.look().catch(() => wait);
			if (stands === null || (kind === 'held') !== (stands.kind === 'held')) break;
		}
		this.#isDry = false;
	}

	async #flushStubbornly(tries: number): Promise<{ error: unknown } | null> {
		for (let attempt = 1; ; attempt += 1) {
			try {
				await this.#outcomes.flush();
				return null;
			} catch (error) {
				if (attempt >= tries || this.#isAborted) return { error };
				await this.#wakeUp.sleep(backoff({ first: 200 }, attempt));
			}
		}
	}

	async #drain(): Promise<RunResult> {
		this.#releaseBuffer('drain');
		this.#courier.halt();
		const cut = setTimeout(() => this.#courier.abort(), this.#graceMs);
		while (this.#courier.window.inFlight > 0 || this.#isLeasing) await this.#wakeUp.change();
		clearTimeout(cut);
		this.#releaseBuffer('drain');
		const failure = await this.#flushStubbornly(1);
		if (failure !== null) throw failure.error;
		return this.#result('aborted', null);
	}

	#releaseBuffer(why: 'infrastructure' | 'drain', some?: ReadonlySet<Uuid>): void {
		for (const message of this.#leases.takeWaiting(some)) this.#settle(message, { kind: 'released', why });
	}

	async #giveBackRevoked(): Promise<void> {
		const fences = this.#leases.waitingFences();
		if (fences.length === 0) return;
		const revoked = await this.#settings.reads.revokedLeases({ fences }).catch(() => []);
		if (revoked.length > 0) this.#releaseBuffer('drain', new Set(revoked));
	}

	get #graceMs(): number {
		const { clock, drainMs } = this.#settings;
		if (this.#endsAt === null) return drainMs;
		return Math.max(0, Math.min(drainMs, (this.#endsAt - steadyOf(clock)) / microsPerMs));
	}

	async #waitMs(): Promise<number | null> {
		const { reads, clock, rate } = this.#settings;
		const { scope, until } = this.#request;
		// A message that a limit holds back is already due, so wait until the limit allows it.
		const pace = rate === undefined ? {} : { perSecond: rate };
		const turn = await reads.nextTurn({ scope, now: clock.now(), ...pace });
		if (turn !== null) {
			this.#tellLimit(turn);
			return this.#isEndless ? Math.min(this.#msUntil(turn), pollMs) : this.#msUntil(turn);
		}
		if (this.#isEndless) return pollMs;
		if (until !== 'drained') return (await this.#isSettled()) ? null : pollMs;
		const due = await reads.nextDue({ scope });
		return due === null ? null : this.#msUntil(due);
	}

	async #isDue(): Promise<boolean> {
		const due = await this.#settings.reads.nextDue({ scope: this.#request.scope });
		return due !== null && due <= this.#settings.clock.now();
	}

	async #countCanceled(): Promise<number> {
		const { scope } = this.#request;
		return scope === null ? 0 : ((await this.#settings.reads.countMessages({ scope })).canceled ?? 0);
	}

	async #isSettled(): Promise<boolean> {
		const { scope, until } = this.#request;
		if (until === 'settled' && scope === null) return true;
		const { leased = 0, queued = 0 } = await this.#settings.reads.countMessages({ scope });
		return leased + (until === 'idle' ? 0 : queued) === 0;
	}

	#msUntil(at: Micros): number {
		return Math.min(Math.max((at - this.#settings.clock.now()) / microsPerMs, 10), longestWaitMs);
	}

	#tellLimit(turn: Micros): void {
		if (turn === this.#toldOf || turn - this.#settings.clock.now() < worthTelling) return;
		this.#toldOf = turn;
		this.#settings.onEvent?.({ kind: 'limited', until: turn });
	}

	#result(kind: RunResult['kind'], reason: string | null): RunResult {
		return { kind, reason, counts: this.#counts };
	}
}

class WakeUp {
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

/** Spreads messages evenly. After a delay, makes up for at most 100 ms, so that a long pause causes no burst. */
class Rate {
	readonly #perSecond: number;
	readonly #clock: Clock;
	#turn: Micros;
	#next: Micros;

	constructor(perSecond: number, clock: Clock) {
		this.#perSecond = perSecond;
		this.#clock = clock;
		this.#next = this.#turn = steadyOf(clock);
	}

	take(messages: number): void {
		this.#turn = Math.max(this.#next, steadyOf(this.#clock) - microsPerSecond / 10);
		this.#next = this.#turn + messages * (microsPerSecond / this.#perSecond);
	}

	get leftMs(): number {
		return (this.#turn - steadyOf(this.#clock)) / microsPerMs;
	}
}
