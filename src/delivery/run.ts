/**
 * One run of the worker. A single loop decides what happens next from plain state (buffer, in flight, fault); whatever
 * changes the state calls `wake`. At most `maxHeld` messages are leased at a time, so memory is bounded.
 */
import { microsPerMs } from '../api/datetime.js';
import type { DeliveryOutcome, Fence, Leased, Settlement } from '../store/queue.js';
import { type Bell, createBell } from './bell.js';
import { type Breaker, createBreaker, type Stop } from './breaker.js';
import type { Composer } from './composer.js';
import type { Conversation } from './conversation.js';
import { noCounts } from './counts.js';
import { createHoldings, type Holdings } from './holdings.js';
import { judge } from './judge.js';
import { createRate, type Rate } from './rate.js';
import { createRemainder, type Remainder } from './remainder.js';
import { formatReply } from './reply.js';
import { createRoom, type Place, type Room } from './room.js';
import { createSettler, type Settler } from './settler.js';
import { createWaits, type Waits, watchMs } from './waits.js';
import type { RunRequest, RunResult, WorkerOptions } from './worker.js';

type Settings = WorkerOptions &
	Required<Pick<WorkerOptions, 'connections' | 'leaseMs' | 'drainMs' | 'sleep'>>;

/** `finish` begins it, once; it rejects as `Worker.run` does. The store and the pool stay open. */
export function createRun(
	settings: Settings,
	composer: Composer,
	request: RunRequest,
): { finish(): Promise<RunResult>; wake(): void } {
	const run = new Run(settings, composer, request);
	return { finish: () => run.finish(), wake: () => run.wake() };
}

const leaseBatch = 100;
/** A store that fails to record is asked so often before a run with an end gives up. */
const storeTries = 5;

type Fault =
	| { kind: 'smtp'; reason: string }
	| { kind: 'store'; error: unknown }
	| { kind: 'stop'; stop: Stop };

class Run {
	readonly #settings: Settings;
	readonly #composer: Composer;
	readonly #request: RunRequest;
	readonly #settler: Settler;
	readonly #rate: Rate | null;
	readonly #maxHeld: number;
	readonly #counts = noCounts();
	readonly #holdings: Holdings;
	readonly #room: Room;
	readonly #breaker: Breaker;
	readonly #waits: Waits;
	readonly #bell: Bell;
	readonly #remainder: Remainder;
	#isLeasing = false;
	/** The last lease came back empty. */
	#isDry = false;
	/** Dry because all that came was ours already; there may be more behind it. */
	#hasMore = false;
	#isCutting = false;
	/** In a pause, which looks by itself. */
	#isPausing = false;
	#fault: Fault | null = null;

	constructor(settings: Settings, composer: Composer, request: RunRequest) {
		this.#settings = settings;
		this.#composer = composer;
		this.#request = request;
		this.#rate = settings.rate === undefined ? null : createRate(settings.rate, settings.clock);
		this.#maxHeld = 2 * leaseBatch + 3 * settings.connections;
		this.#holdings = createHoldings(settings);
		this.#room = createRoom(settings.connections);
		this.#bell = createBell({ sleep: settings.sleep, isAborted: () => this.#isAborted });
		this.#remainder = createRemainder({ ...settings, request });
		this.#breaker = createBreaker(settings);
		this.#waits = createWaits({
			breaker: this.#breaker,
			sleep: (ms) => this.#bell.sleep(ms),
			isAborted: () => this.#isAborted,
			onEvent: settings.onEvent,
		});
		this.#settler = createSettler({
			queue: settings.queue,
			fenceOf: (message) => this.#holdings.fenceOf(message),
			onSettled: (settlement, result) => this.#onSettled(settlement, result),
			onFault: (error) => this.#onFault({ kind: 'store', error }),
			onWrite: () => this.#fill(leaseBatch),
		});
	}

	wake(): void {
		this.#isDry = false;
		this.#bell.wake();
	}

	async finish(): Promise<RunResult> {
		const onAbort = () => this.wake();
		const renewal = setInterval(() => this.#holdings.renew(), this.#settings.leaseMs / 3);
		const watch = setInterval(() => void this.#look(), watchMs);
		this.#request.signal?.addEventListener('abort', onAbort);
		try {
			await this.#look();
			const canceledBefore = await this.#remainder.countCanceled();
			const result = await this.#loop();
			this.#counts.canceled = (await this.#remainder.countCanceled()) - canceledBefore;
			return result;
		} finally {
			clearInterval(renewal);
			clearInterval(watch);
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
			this.#fill(2 * this.#settings.connections);
			if (this.#mayStart) await this.#startNext();
			else if (this.#room.inFlight > 0 || this.#isLeasing) await this.#bell.change();
			else if (!(await this.#idle())) return this.#result('done', null);
		}
	}

	get #isAborted(): boolean {
		return this.#request.signal?.aborted ?? false;
	}

	get #mayStart(): boolean {
		if (this.#holdings.waiting === 0) return false;
		return this.#breaker.isProbing ? this.#room.inFlight === 0 : this.#room.isFree(this.#settler.unsettled);
	}

	get #isEndless(): boolean {
		return this.#request.until === 'aborted';
	}

	/** A person's pause stops every run; a fault that others met only those that can wait: the others try for themselves. */
	async #look(): Promise<void> {
		if (this.#isPausing) return;
		// A store that cannot be read is met by the next lease.
		const stop = await this.#breaker.look().catch(() => null);
		if (stop !== null && (stop.kind === 'held' || this.#isEndless)) this.#onFault({ kind: 'stop', stop });
	}

	/**
	 * Leases in the background while there is room: with each group of outcomes, whose commit it shares, and else early
	 * enough that no connection waits for the store.
	 */
	#fill(mostWaiting: number): void {
		const most = this.#breaker.isProbing ? 1 : this.#maxHeld;
		const room = Math.min(leaseBatch, most - this.#holdings.size);
		const isOver = this.#isAborted || this.#fault !== null;
		if (isOver || this.#isLeasing || this.#isDry || room <= 0 || this.#holdings.waiting > mostWaiting) return;
		this.#isLeasing = true;
		this.#lease(room)
			.catch((error: unknown) => this.#onFault({ kind: 'store', error }))
			.finally(() => {
				this.#isLeasing = false;
				this.#bell.changed();
			});
	}

	async #lease(max: number): Promise<void> {
		const { queue, owner, clock } = this.#settings;
		const now = clock.now();
		const until = this.#holdings.leaseEnd(now);
		// The rate holds for all processes that ask for one together: the store counts, this one spreads its share.
		const pace = this.#settings.rate === undefined ? {} : { perSecond: this.#settings.rate };
		const leased = await queue.lease({ owner, now, until, max, scope: this.#request.scope, ...pace });
		const fresh = leased.filter((message) => this.#holdings.take(message, until));
		this.#isDry = fresh.length === 0;
		this.#hasMore = this.#isDry && leased.length > 0;
	}

	async #startNext(): Promise<void> {
		await this.#waitForTurn();
		if (this.#isAborted || this.#fault !== null) return;
		const message = this.#holdings.next();
		if (message === null) return;
		const place = this.#room.enter();
		this.#deliver(message, place)
			.catch((error: unknown) => {
				this.#holdings.putBack(message);
				this.#onFault({ kind: 'store', error });
			})
			.finally(() => {
				place.leave();
				this.#bell.changed();
			});
	}

	/** A wake-up for new work must not shorten the wait that the rate asks for. */
	async #waitForTurn(): Promise<void> {
		const { clock } = this.#settings;
		const turn = clock.now() + (this.#rate?.take() ?? 0) * microsPerMs;
		for (let now = clock.now(); now < turn && !this.#isAborted && this.#fault === null; now = clock.now()) {
			await this.#bell.sleep((turn - now) / microsPerMs);
		}
	}

	/** Rejects only when the store cannot be read; then nothing was sent. */
	async #deliver(message: Leased, place: Place): Promise<void> {
		const composed = await this.#composer.compose(message);
		if (composed.kind === 'mail') {
			place.hold(composed.mail.bytes.length);
			this.#bell.changed();
		}
		const conversation =
			composed.kind === 'mail' ? await this.#settings.pool.send(composed.mail) : composed.conversation;
		this.#settle(message, this.#judge(message, conversation));
	}

	#judge(message: Leased, conversation: Conversation): DeliveryOutcome {
		const { clock, random } = this.#settings;
		const c = { now: clock.now(), random, isCutting: this.#isCutting };
		const outcome = judge(message, conversation, c);
		// What cannot be composed says nothing about the server.
		if (outcome.kind !== 'released' && conversation.kind !== 'unsendable') this.#breaker.worked();
		if (outcome.kind === 'released' && outcome.why === 'infrastructure')
			this.#onFault({ kind: 'smtp', reason: formatReply(conversation.reply) });
		return outcome;
	}

	#settle({ message, fence }: Fence, outcome: DeliveryOutcome): void {
		this.#settler.push({ message, fence, at: this.#settings.clock.now(), outcome });
	}

	#onSettled({ message, outcome }: Settlement, result: 'recorded' | 'lost_lease'): void {
		this.#holdings.forget(message);
		this.#waits.stored();
		if (result === 'lost_lease')
			this.#settings.onEvent?.({ kind: 'lost_lease', message, outcome: outcome.kind });
		else if (outcome.kind !== 'released') {
			this.#counts[outcome.kind] += 1;
			this.#settings.onProgress?.(this.#counts);
		}
		this.#bell.changed();
	}

	#onFault(fault: Fault): void {
		this.#fault ??= fault;
		this.#bell.wake();
	}

	/** Nothing is leased, nothing in flight. False: the run is over. */
	async #idle(): Promise<boolean> {
		await this.#settler.flush().catch((error: unknown) => this.#onFault({ kind: 'store', error }));
		if (this.#hasMore) this.#isDry = false;
		this.#hasMore = false;
		if (this.#isDry) await this.#look();
		if (this.#fault !== null || !this.#isDry) return true;
		const waitMs = await this.#remainder.waitMs();
		if (waitMs === null) return false;
		await this.#bell.sleep(waitMs);
		this.#isDry = false;
		return true;
	}

	/** Waits for what is in flight, gives the rest back. A result ends the run; `null`: waited, go on. */
	async #pause(fault: Fault): Promise<RunResult | null> {
		this.#isPausing = true;
		try {
			while (this.#room.inFlight > 0 || this.#isLeasing) {
				if (this.#isAborted) return null;
				await this.#bell.change();
			}
			this.#releaseBuffer(fault.kind === 'stop' ? 'drain' : 'infrastructure');
			const failure = await this.#flushStubbornly(this.#isEndless ? 1 : storeTries);
			const error = failure ?? (fault.kind === 'store' ? fault : null);
			// The store's own error: it names the file and what to do, and the caller knows it from a bug.
			if (error !== null && !this.#isEndless) throw error.error;
			if (error !== null) return await this.#wait(() => this.#waits.forStore(String(error.error)));
			if (fault.kind === 'smtp') return await this.#waitForServer(fault.reason);
			return fault.kind === 'stop' ? await this.#waitForOthers(fault.stop) : null;
		} finally {
			this.#isPausing = false;
		}
	}

	/** A run with an end leaves the trying to whoever comes next. */
	async #waitForServer(reason: string): Promise<RunResult | null> {
		const ms = await this.#breaker.trip(reason);
		if (!this.#isEndless) return this.#result('paused', reason);
		return this.#wait(() => this.#waits.forServer({ reason, ms }));
	}

	async #waitForOthers(stop: Stop): Promise<RunResult | null> {
		if (!this.#isEndless) return this.#result('paused', stop.reason);
		return this.#wait(() =>
			stop.kind === 'held' ? this.#waits.forPerson(stop.reason) : this.#waits.forServer(stop),
		);
	}

	async #wait(waited: () => Promise<void>): Promise<null> {
		this.#fault = null;
		await waited();
		this.#isDry = false;
		return null;
	}

	async #flushStubbornly(tries: number): Promise<{ error: unknown } | null> {
		for (let attempt = 1; ; attempt += 1) {
			try {
				await this.#settler.flush();
				return null;
			} catch (error) {
				if (attempt >= tries || this.#isAborted) return { error };
				await this.#bell.sleep(100 * 2 ** attempt);
			}
		}
	}

	/** The signal came: what is in flight may end, what takes too long is cut, all else goes back. */
	async #drain(): Promise<RunResult> {
		this.#releaseBuffer('drain');
		const cut = setTimeout(() => {
			this.#isCutting = true;
			this.#settings.pool.abort();
		}, this.#settings.drainMs);
		while (this.#room.inFlight > 0 || this.#isLeasing) await this.#bell.change();
		clearTimeout(cut);
		this.#releaseBuffer('drain');
		const failure = await this.#flushStubbornly(1);
		if (failure !== null) throw failure.error;
		return this.#result('aborted', null);
	}

	#releaseBuffer(why: 'infrastructure' | 'drain'): void {
		for (const message of this.#holdings.takeWaiting()) this.#settle(message, { kind: 'released', why });
	}

	#result(kind: RunResult['kind'], reason: string | null): RunResult {
		return { kind, reason, counts: this.#counts };
	}
}
