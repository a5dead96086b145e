/** What a run has left to wait for, once nothing of its scope is due. */
import { type Clock, type Micros, microsPerMs, microsPerSecond } from '../api/datetime.js';
import type { Reads } from '../store/store.js';
import type { RunRequest, WorkerEvent } from './worker.js';

export interface Remainder {
	/** Milliseconds until it is worth looking again; null: the run is over. */
	waitMs(): Promise<number | null>;
	/** Messages of the scope that were canceled so far; 0 where the scope is everything. */
	countCanceled(): Promise<number>;
}

/** How often an idle endless run looks for work that nobody woke it for: another process may have queued it. */
const pollMs = 1_000;
const longestWaitMs = 60_000;
/** Nobody is told of a shorter wait for a limit. */
const worthTelling: Micros = 5 * microsPerSecond;

/** For the one run of `request`. Reads alone, and rejects when the store does; `rate` is a limit among the others. */
export function createRemainder(options: {
	reads: Pick<Reads, 'nextDue' | 'nextTurn' | 'countMessages'>;
	clock: Clock;
	/** Messages a second; absent = as fast as it goes. */
	rate?: number;
	request: RunRequest;
	onEvent?: ((event: WorkerEvent) => void) | undefined;
}): Remainder {
	const { reads, clock, request, rate, onEvent } = options;
	const { scope, until } = request;
	const count = async (state: 'leased' | 'canceled') =>
		scope === null ? 0 : ((await reads.countMessages({ scope }))[state] ?? 0);
	const msUntil = (at: Micros) => Math.min(Math.max((at - clock.now()) / microsPerMs, 10), longestWaitMs);
	let toldOf: Micros | null = null;
	const tellLimit = (turn: Micros) => {
		if (turn === toldOf || turn - clock.now() < worthTelling) return;
		toldOf = turn;
		onEvent?.({ kind: 'limited', until: turn });
	};
	return {
		async waitMs() {
			// What a limit holds back is due: it is not over before its turn has come.
			const pace = rate === undefined ? {} : { perSecond: rate };
			const search = until === 'aborted' ? 'at_least' : 'exactly';
			const turn = await reads.nextTurn({ scope, now: clock.now(), search, ...pace });
			if (turn !== null) {
				tellLimit(turn);
				return until === 'aborted' ? Math.min(msUntil(turn), pollMs) : msUntil(turn);
			}
			/*
			 * Of a scope, what another process has leased is not settled: it is sending it, or died and its lease runs out.
			 * Whoever waits for a send is not to be told that it is over.
			 */
			if (until === 'settled') return (await count('leased')) > 0 ? pollMs : null;
			if (until === 'aborted') return pollMs;
			const due = await reads.nextDue({ scope });
			return due === null ? null : msUntil(due);
		},
		countCanceled: () => count('canceled'),
	};
}
