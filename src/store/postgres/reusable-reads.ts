/**
 * Connections whose transaction only read. It is answered before it ends: what begins in the same turn of the event loop
 * ends it in its own packet, and a command of a few reads needs no second connection.
 */
import type { PoolClient } from 'pg';
import type { Pools } from './pools.js';

export interface ReusableRead {
	client: PoolClient;
	/** Asks for the end of its transaction; true: that failed. */
	end(): Promise<boolean>;
	stopWatching(): void;
	release(isBroken: boolean): void;
}

export interface ReusableReads {
	/** Ends it soon, unless `connect` gives it to another transaction before. */
	rest(one: ReusableRead): void;
	/** `isReading`: the next statement has to be ROLLBACK. Rejects as `Pools.connect`. */
	connect(): Promise<{ client: PoolClient; isReading: boolean }>;
}

export function createReusableReads(pools: Pick<Pools, 'connect' | 'idle'>): ReusableReads {
	const resting: ReusableRead[] = [];
	const endings = new Set<Promise<unknown>>();
	return {
		rest: (one) => {
			resting.push(one);
			setImmediate(() => {
				const at = resting.indexOf(one);
				if (at === -1) return;
				resting.splice(at, 1);
				const ending = one
					.end()
					.then(one.release)
					.finally(() => endings.delete(ending));
				endings.add(ending);
			});
		},
		connect: async () => {
			const rested = resting.pop();
			rested?.stopWatching();
			if (rested !== undefined) return { client: rested.client, isReading: true };
			// One that is about to be free is there sooner than a new one.
			if (pools.idle.size === 0 && endings.size > 0) await Promise.race(endings);
			return { client: await pools.connect(), isReading: false };
		},
	};
}
