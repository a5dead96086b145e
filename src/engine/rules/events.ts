/** How an event counts: each message once a type, on the day of the first such event. */
import type { Micros } from '../../api/datetime.js';
import type { EventType } from '../../api/records.js';

/** `human` leaves out what machines did (prefetching proxies, link scanners). */
export type Audience = 'all' | 'human';

/** Times of the first event of one (message, type); null = none yet. */
export type Firsts = Readonly<Record<Audience, Micros | null>>;

/** A count that moves from one time to another; `from` null = it is new. */
export interface FigureMove {
	audience: Audience;
	from: Micros | null;
	to: Micros;
}

/**
 * What one more event moves. Events may arrive out of order, so that an earlier one takes the count to its own day;
 * a machine's event moves nothing for humans.
 */
export function figureMoves(firsts: Firsts, event: { at: Micros; machine: boolean }): FigureMove[] {
	const audiences: readonly Audience[] = event.machine ? ['all'] : ['all', 'human'];
	return audiences
		.map((audience) => ({ audience, from: firsts[audience], to: event.at }))
		.filter(({ from, to }) => from === null || to < from);
}

/** Types that a machine may bring about: only these are counted for both audiences. */
export function hasAudiences(type: EventType): boolean {
	return type === 'OPENED' || type === 'REDIRECTED' || type === 'UNSUBSCRIBED';
}
