/** Opens and clicks as one flat list: objects carry their keys, eleven of them, across to the other thread each time. */
import type { TrackedEvent } from '../store/store.js';

/** Pure. Eleven cells an event, in the order of `restoreEvents`; an absent `too_soon` is undefined. */
export function flattenEvents(events: readonly TrackedEvent[]): unknown[] {
	const cells: unknown[] = [];
	for (const one of events) {
		cells.push(one.message, one.type, one.at, one.link, one.machine, one.too_soon);
		cells.push(one.ip, one.user_agent, one.url, one.smtp_code, one.diagnostic);
	}
	return cells;
}

const width = 11;

/** What `flattenEvents` made; the cells are trusted. */
export function restoreEvents(cells: readonly unknown[]): TrackedEvent[] {
	const events: TrackedEvent[] = [];
	for (let at = 0; at < cells.length; at += width) events.push(eventAt(cells, at));
	return events;
}

function eventAt(cells: readonly unknown[], at: number): TrackedEvent {
	// What `flattenEvents` put there; a copy between threads keeps its type.
	const cell = <K extends keyof TrackedEvent>(index: number) => cells[at + index] as TrackedEvent[K];
	const tooSoon = cell<'too_soon'>(5);
	return {
		message: cell<'message'>(0),
		type: cell<'type'>(1),
		at: cell<'at'>(2),
		link: cell<'link'>(3),
		machine: cell<'machine'>(4),
		...(tooSoon !== undefined && { too_soon: tooSoon }),
		ip: cell<'ip'>(6),
		user_agent: cell<'user_agent'>(7),
		url: cell<'url'>(8),
		smtp_code: cell<'smtp_code'>(9),
		diagnostic: cell<'diagnostic'>(10),
	};
}
