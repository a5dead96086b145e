/** What a run has leased and not recorded yet: its fences, the ends of its leases, and what is still to begin. */
import { type Micros, microsPerMs } from '../api/datetime.js';
import type { Uuid } from '../api/records.js';
import type { Fence, Leased } from '../store/queue.js';
import type { WorkerOptions } from './worker.js';

export interface Holdings {
	/** Leased and not recorded. */
	readonly size: number;
	/** Of these, not begun. */
	readonly waiting: number;
	/** False: it was ours already. */
	take(leased: Leased, until: Micros): boolean;
	/** The next to begin; `null` when there is none, or its lease ran out while it waited. */
	next(): Leased | null;
	putBack(message: Leased): void;
	/** All that are not begun, to be given back. */
	takeWaiting(): Leased[];
	/** The fence that holds a message now. */
	fenceOf(message: Uuid): number | undefined;
	forget(message: Uuid): void;
	leaseEnd(now: Micros): Micros;
	/** A lease must outlive the longest conversation (10 min after the dot), so all that is held is renewed. */
	renew(): void;
}

type Options = Pick<WorkerOptions, 'queue' | 'owner' | 'clock' | 'onEvent'> & { leaseMs: number };

/** For one run, in memory. A renewal that fails is told to `onEvent`, and tried again at the next. */
export function createHoldings(options: Options): Holdings {
	const { queue, owner, clock, onEvent } = options;
	const held = new Map<Uuid, Fence & { until: Micros }>();
	const waiting: Leased[] = [];
	const leaseEnd = (now: Micros) => now + options.leaseMs * microsPerMs;
	return {
		get size() {
			return held.size;
		},
		get waiting() {
			return waiting.length;
		},
		/*
		 * A lease of ours that ran out while this process slept may come back to us. The message is then in our hands
		 * already, perhaps sent: its outcome is recorded under the new fence, and it is not sent twice.
		 */
		take(leased, until) {
			const { message, fence } = leased;
			const isNew = !held.has(message);
			held.set(message, { message, fence, until });
			if (isNew) waiting.push(leased);
			return isNew;
		},
		next() {
			const leased = waiting.shift();
			if (leased === undefined) return null;
			const { message } = leased;
			// After a long sleep of the machine others may have leased what waits here.
			if ((held.get(message)?.until ?? 0) > clock.now()) return leased;
			held.delete(message);
			onEvent?.({ kind: 'lost_lease', message, outcome: 'not begun' });
			return null;
		},
		putBack: (message) => void waiting.push(message),
		takeWaiting: () => waiting.splice(0),
		fenceOf: (message) => held.get(message)?.fence,
		forget: (message) => void held.delete(message),
		leaseEnd,
		renew() {
			const now = clock.now();
			const leases = [...held.values()].filter(({ until }) => until > now);
			if (leases.length === 0) return;
			const until = leaseEnd(now);
			const fences = leases.map(({ message, fence }) => ({ message, fence }));
			queue.renew({ owner, fences, until }).then(
				() => {
					for (const lease of leases) lease.until = until;
				},
				(error: unknown) => onEvent?.({ kind: 'renew_failed', error }),
			);
		},
	};
}
