/** How an event counts: each message once a type, on the day of the first such event. */
import type { Micros } from '../../api/datetime.js';
import type { EventType, MessageState } from '../../api/records.js';

/** `human` leaves out events of machines (prefetching proxies, link scanners). */
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
 * The changes of counts by one more event. Events may arrive out of order, so an earlier one moves the count to its own
 * day; a machine's event moves nothing for humans.
 */
export function figureMoves(firsts: Firsts, event: { at: Micros; machine: boolean }): FigureMove[] {
	const audiences: readonly Audience[] = event.machine ? ['all'] : ['all', 'human'];
	return audiences
		.map((audience) => ({ audience, from: firsts[audience], to: event.at }))
		.filter(({ from, to }) => from === null || to < from);
}

/**
 * True for an event too soon after the sending for a person. A message on its way may have been accepted without a
 * record yet. For one whose answer was lost (`uncertain`), or that bounced, the time is unknown.
 */
export function isTooSoon(
	message: { state: MessageState; sent_at: Micros | null },
	event: { at: Micros; too_soon?: Micros },
): boolean {
	if (event.too_soon === undefined) return false;
	if (message.sent_at !== null) return event.at < message.sent_at + event.too_soon;
	return message.state === 'queued' || message.state === 'leased' || message.state === 'deferred';
}

/** Types that a machine may cause: only these are counted for both audiences. */
export function hasAudiences(type: EventType): boolean {
	return type === 'OPENED' || type === 'REDIRECTED' || type === 'UNSUBSCRIBED';
}

/** It changes nothing but the counts of its message. */
export function isReading({ type }: { type: EventType }): boolean {
	return type === 'OPENED' || type === 'REDIRECTED';
}
