/** The store's operations as messages between threads: a store that sends messages, and its other end. */
import type { Subscriber } from '../api/records.js';
import type { OpenOptions } from '../store/open.js';
import { type Command, driverOf, type Parts, type Run } from '../store/operations.js';
import type { Queue } from '../store/queue.js';
import type { Reads, Slice, TrackedEvent, Writes } from '../store/store.js';
import type { Failure } from './thread-errors.js';

/** `thread`: `open`, `stop` and `close`; the others are the parts of the store. */
export interface Operation {
	id: number;
	part: 'thread' | keyof Parts;
	method: string;
	command: unknown;
	/** A later `stop` of the thread, whose command is this id, aborts it. */
	isStoppable?: true;
}

export type Answer = { id: number } & (
	| { kind: 'value'; value: unknown }
	| { kind: 'failure'; failure: Failure }
);

/** The database connection a thread opens: the store that writes, or one that only reads. */
export interface OpenCommand {
	role: 'writer' | 'reader';
	url: string;
	/** Without the clock: a thread uses the machine's own. */
	options: Omit<OpenOptions, 'clock'>;
}

/** Reads that `run` carries out in another thread, which answers with `servedReads`. */
export function remoteReads(run: Run): Reads {
	return {
		...driverOf('reads', run),
		pageSubscribers: async (command) => {
			// Made by `servedReads` in the other thread.
			const page = (await run('pageSubscribers', command)) as FlatPage | null;
			return page === null ? null : restorePage(page);
		},
	};
}

/** Reads in the form of answers to `remoteReads`. */
export function servedReads(reads: Reads): Omit<Reads, 'pageSubscribers'> & { pageSubscribers: unknown } {
	return {
		...reads,
		pageSubscribers: async (command: Command<'pageSubscribers'>) => {
			const slice = await reads.pageSubscribers(command);
			return slice === null ? null : flattenPage(slice);
		},
	};
}

/** Writes that `run` carries out in another thread, by its `servedWrites`. */
export function remoteWrites(run: Run): Writes {
	return {
		...driverOf('writes', run),
		recordEvents: async ({ events }) => {
			await run('recordEvents', flattenEvents(events));
		},
	};
}

/** Writes for the messages of `remoteWrites`. */
export function servedWrites(writes: Writes): Omit<Writes, 'recordEvents'> & { recordEvents: unknown } {
	return {
		...writes,
		recordEvents: (cells: readonly unknown[]) => writes.recordEvents({ events: restoreEvents(cells) }),
	};
}

/** The queue of another thread. */
export function remoteQueue(run: Run): Queue {
	return driverOf('queue', run);
}

/**
 * A page of subscribers as one flat list: the other thread takes 58 µs to receive a hundred of them, and 102 as
 * objects, whose keys travel with each.
 */
interface FlatPage {
	/** Of all pages. */
	count: number;
	/** Eleven cells a record, in the order of the wire, one record after the other. */
	cells: readonly unknown[];
}

function flattenPage({ count, results }: Slice<Subscriber>): FlatPage {
	const cells: unknown[] = [];
	for (const one of results) {
		cells.push(one.id, one.list_id, one.email, one.name, one.is_active, one.disable_reason);
		cells.push(one.is_email_verified, one.meta, one.source, one.opt_in_signed, one.date_created);
	}
	return { count, cells };
}

const cellsOfSubscriber = 11;

function restorePage({ count, cells }: FlatPage): Slice<Subscriber> {
	const results: Subscriber[] = [];
	for (let at = 0; at < cells.length; at += cellsOfSubscriber) results.push(subscriberAt(cells, at));
	return { count, results };
}

function subscriberAt(cells: readonly unknown[], at: number): Subscriber {
	// Put there by `flattenPage`; a copy between threads keeps its type.
	const cell = <K extends keyof Subscriber>(index: number) => cells[at + index] as Subscriber[K];
	return {
		id: cell<'id'>(0),
		list_id: cell<'list_id'>(1),
		email: cell<'email'>(2),
		name: cell<'name'>(3),
		is_active: cell<'is_active'>(4),
		disable_reason: cell<'disable_reason'>(5),
		is_email_verified: cell<'is_email_verified'>(6),
		meta: cell<'meta'>(7),
		source: cell<'source'>(8),
		opt_in_signed: cell<'opt_in_signed'>(9),
		date_created: cell<'date_created'>(10),
	};
}

/**
 * Opens and clicks as one flat list, twelve cells an event, in the order of `eventAt`; missing values are undefined. As
 * objects, each would carry its dozen keys to the other thread.
 */
function flattenEvents(events: readonly TrackedEvent[]): unknown[] {
	const cells: unknown[] = [];
	for (const one of events) {
		cells.push(one.message, one.type, one.at, one.link, one.machine, one.too_soon);
		cells.push(one.ip, one.user_agent, one.url, one.smtp_code, one.diagnostic, one.from_all_lists);
	}
	return cells;
}

const cellsOfEvent = 12;

function restoreEvents(cells: readonly unknown[]): TrackedEvent[] {
	const events: TrackedEvent[] = [];
	for (let at = 0; at < cells.length; at += cellsOfEvent) events.push(eventAt(cells, at));
	return events;
}

function eventAt(cells: readonly unknown[], at: number): TrackedEvent {
	// Put there by `flattenEvents`; a copy between threads keeps its type.
	const cell = <K extends keyof TrackedEvent>(index: number) => cells[at + index] as TrackedEvent[K];
	const tooSoon = cell<'too_soon'>(5);
	const fromAll = cell<'from_all_lists'>(11);
	return {
		message: cell<'message'>(0),
		type: cell<'type'>(1),
		at: cell<'at'>(2),
		link: cell<'link'>(3),
		machine: cell<'machine'>(4),
		...(tooSoon !== undefined && { too_soon: tooSoon }),
		...(fromAll !== undefined && { from_all_lists: fromAll }),
		ip: cell<'ip'>(6),
		user_agent: cell<'user_agent'>(7),
		url: cell<'url'>(8),
		smtp_code: cell<'smtp_code'>(9),
		diagnostic: cell<'diagnostic'>(10),
	};
}
