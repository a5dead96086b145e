/**
 * Messages that a run has leased and not yet recorded: their fences, the ends of their leases, and those that wait to
 * begin.
 */
import { type Micros, microsPerMs, steadyOf } from '../api/datetime.js';
import type { Uuid } from '../api/records.js';
import type { Fence, Leased } from '../store/queue.js';
import type { WorkerOptions } from './worker.js';

export interface Leases {
	/** Messages leased and not recorded. */
	readonly size: number;
	readonly waiting: number;
	/** The next one has to leave before its window ends. */
	readonly isNextTimed: boolean;
	/** False: this run held it already. */
	take(leased: Leased, end: Micros): boolean;
	/** The next messages to begin together; empty when there are none, or their leases ended while they waited. */
	next(most: number): Leased[];
	/** The number of these. */
	sizeOfNext(most: number): number;
	/** Whether the next group is complete, however much is leased after it. */
	hasWhole(most: number): boolean;
	putBack(message: Leased): void;
	/** The messages not begun. */
	waitingFences(): Fence[];
	/** Removes and returns messages not begun, to be given back: all, or some. */
	takeWaiting(some?: ReadonlySet<Uuid>): Leased[];
	/** The current fence of a message. */
	fenceOf(message: Uuid): number | undefined;
	forget(message: Uuid): void;
	/** The end of a lease requested now, by the steady clock: the machine's clock may change. */
	leaseEnd(): Micros;
	/** Renews all leases: a lease must outlive the longest conversation (10 min after the dot). */
	renew(): void;
}

type Options = Pick<WorkerOptions, 'queue' | 'owner' | 'clock' | 'onEvent'> & { leaseMs: number };

/** For one run, in memory. A failed renewal is reported to `onEvent`, and repeated at the next. */
export function createLeases(options: Options): Leases {
	const { queue, owner, clock, onEvent } = options;
	const held = new Map<Uuid, Fence & { end: Micros }>();
	const waiting: Leased[] = [];
	const sizeOfNext = (most: number) => {
		const call = waiting[0]?.call;
		if (call === undefined) return Math.min(1, waiting.length);
		const end = waiting.findIndex((one, index) => index === most || one.call !== call);
		return end === -1 ? waiting.length : end;
	};
	const isOurs = ({ message, leave_by }: Leased, now: Micros) => {
		// Its window has ended: its lease runs out, and it leaves when the window opens again.
		if (leave_by !== undefined && leave_by <= clock.now()) {
			held.delete(message);
			return false;
		}
		// After the machine slept for long, others may have leased the messages that wait here.
		if ((held.get(message)?.end ?? 0) > now) return true;
		held.delete(message);
		onEvent?.({ kind: 'lost_lease', message, outcome: 'not begun' });
		return false;
	};
	const leaseEnd = () => steadyOf(clock) + options.leaseMs * microsPerMs;
	return {
		get size() {
			return held.size;
		},
		get waiting() {
			return waiting.length;
		},
		get isNextTimed() {
			return waiting[0]?.leave_by !== undefined;
		},
		/**
		 * A lease that ended while this process slept may come back to this run. The message is then in flight already,
		 * perhaps sent: its outcome is recorded under the new fence, and it is not sent twice.
		 */
		take(leased, end) {
			const { message, fence } = leased;
			const isNew = !held.has(message);
			held.set(message, { message, fence, end });
			if (isNew) waiting.push(leased);
			return isNew;
		},
		sizeOfNext,
		hasWhole(most) {
			const size = sizeOfNext(most);
			return size < waiting.length || size === most || waiting[0]?.call === undefined;
		},
		next(most) {
			const now = steadyOf(clock);
			const group: Leased[] = [];
			for (let size = sizeOfNext(most); size > 0; size -= 1) {
				const message = waiting.shift();
				if (message !== undefined && isOurs(message, now)) group.push(message);
			}
			return group;
		},
		putBack: (message) => void waiting.push(message),
		waitingFences: () => waiting.map(({ message }) => ({ message, fence: held.get(message)?.fence ?? 0 })),
		takeWaiting(some) {
			const all = waiting.splice(0);
			if (some === undefined) return all;
			waiting.push(...all.filter(({ message }) => !some.has(message)));
			return all.filter(({ message }) => some.has(message));
		},
		fenceOf: (message) => held.get(message)?.fence,
		forget: (message) => void held.delete(message),
		leaseEnd,
		renew() {
			const leases = [...held.values()].filter(({ end }) => end > steadyOf(clock));
			if (leases.length === 0) return;
			const end = leaseEnd();
			const now = clock.now();
			const until = now + options.leaseMs * microsPerMs;
			const fences = leases.map(({ message, fence }) => ({ message, fence }));
			queue.renew({ owner, fences, now, until }).then(
				() => {
					for (const lease of leases) lease.end = end;
				},
				(error: unknown) => onEvent?.({ kind: 'renew_failed', error }),
			);
		},
	};
}

/** The in-flight window: how many messages may be under way, by connections, by what a crash may repeat, and by bytes. */
export interface InFlight {
	/** Messages begun and not ended. */
	readonly inFlight: number;
	/**
	 * Whether one more may begin; `unsettled` is the number of outcomes not recorded yet. `isTimed`: it must not leave
	 * later, so it is not one of many that wait.
	 */
	isFree(unsettled: number, isTimed?: boolean): boolean;
	/** Begins one message. */
	enter(): Slot;
}

export interface Slot {
	/** Sets its size, once it is known. */
	hold(bytes: number): void;
	leave(): void;
}

/** The messages that a crash may repeat, besides one body for each connection: sent, but not recorded. */
const mostUnsettled = 100;
/** Bytes composed and not answered. A larger message goes alone. */
const mostBytes = 16 * 1024 * 1024;
/**
 * On a connection with PIPELINING one message waits for its answer, the envelope of the next has left with its body,
 * and a third is ready for the moment of the answer. More of them wait where the server answers quickly: a hundred in
 * place of fifteen send 1.3 times as many: with fifteen the thread that sends was idle for a sixth of the time.
 */
const perConnection = { least: 3, most: 20 };
/** What waits is answered within this time, at the rate at which the last ones were: a stop or a pause waits for it. */
const aheadMs = 20;

/**
 * For one run. Until the first size is known one message goes alone. Every message that enters also leaves, whatever
 * its outcome.
 */
export function createInFlight(connections: number, nowMs = () => performance.now()): InFlight {
	const [least, most] = [perConnection.least * connections, perConnection.most * connections];
	let room = least;
	/** Since the last look at the rate. */
	let left = 0;
	let since = nowMs();
	const look = () => {
		const now = nowMs();
		room = Math.min(most, Math.max(least, Math.floor((left * aheadMs) / Math.max(1, now - since))));
		left = 0;
		since = now;
	};
	let inFlight = 0;
	let unknown = 0;
	let bytes = 0;
	/** The estimate for the next message: neighbours in the queue are mostly of one campaign. Unknown before the first. */
	let lastBytes = mostBytes;
	return {
		get inFlight() {
			return inFlight;
		},
		isFree(unsettled, isTimed = false) {
			if (inFlight >= (isTimed ? least : room)) return false;
			if (unsettled + inFlight >= mostUnsettled + connections) return false;
			return inFlight === 0 || bytes + (unknown + 1) * lastBytes <= mostBytes;
		},
		enter() {
			inFlight += 1;
			unknown += 1;
			let held: number | null = null;
			return {
				hold(size) {
					held = size;
					lastBytes = size;
					bytes += size;
					unknown -= 1;
				},
				leave() {
					inFlight -= 1;
					left += 1;
					if (left >= least) look();
					if (held === null) unknown -= 1;
					else bytes -= held;
				},
			};
		},
	};
}
