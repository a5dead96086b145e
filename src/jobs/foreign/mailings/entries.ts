/** What the ledger of a mailing holds, one entry a line; whatever is true of a mailing was written before it was so. */
import type { AcceptCounts, Ack, MailingSpec, Reject } from '../../../api/capabilities.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { RequestsSpec } from '../../../api/mailings.js';
import type { Uuid, WireDateTime } from '../../../api/records.js';

/** A recipient, and what differs from the mailing's own context; absent = nothing. */
export interface PersonItem {
	to: string;
	context?: Readonly<Record<string, string>>;
	/** Where it is in its source. */
	line?: number;
}

/** A send request as it was given, but for recipients found before. */
export interface RequestItem {
	to: readonly string[];
	request: Omit<SendRequest, 'to'>;
	line?: number;
}

/** A row that could not be taken; it has no seat. */
export interface RejectedItem {
	to: string;
	code: string;
	error: string;
	line?: number;
}

export type StagedItem = PersonItem | RequestItem;
export type Item = StagedItem | RejectedItem;

/**
 * Seats number the staged rows from 0, in the order of the ledger. `intent` comes before a call, `outcome` after it: a
 * seat that has the one without the other may or may not have been sent to.
 */
export type MailingEntry =
	| ({ kind: 'mailing' } & MailingIdentity)
	/** Rows of a file from number `first` on, in their order. */
	| { kind: 'batch'; first: number; ack: Ack<AcceptCounts>; items: readonly Item[] }
	/** A page of a list; `isLast` false: more pages belong to it. */
	| {
			kind: 'list';
			list_id: number;
			counts: AcceptCounts;
			rejects: readonly Reject[];
			items: readonly Item[];
			isLast: boolean;
	  }
	/** Whatever was staged is void: the walk through a list was broken off, and begins again. */
	| { kind: 'anew' }
	/** No further row comes. */
	| { kind: 'complete' }
	| { kind: 'released' }
	| { kind: 'canceled' }
	| { kind: 'intent'; seats: readonly number[] }
	| OutcomeEntry;

/** What a mailing is, from its first entry to its last. */
export interface MailingIdentity {
	id: Uuid;
	key: string;
	spec: MailingSpec | RequestsSpec;
	wanted: WantedVariables;
	date_created: WireDateTime;
}

/** The variables the content uses; null = only the service knows. */
export type WantedVariables = readonly string[] | null;

/**
 * How a call ended for some of its seats. `accepted`: the service made a message (`ids` in the order of seats, null =
 * not told); `suppressed`: it answered, and made none; `failed`: it refused; `unknown`: it may have made one; `waiting`:
 * it certainly made none, and may be asked again.
 */
export type OutcomeEntry =
	| { kind: 'outcome'; as: 'accepted'; seats: readonly number[]; ids: readonly (Uuid | null)[] }
	| { kind: 'outcome'; as: 'suppressed' | 'waiting'; seats: readonly number[] }
	| { kind: 'outcome'; as: 'failed' | 'unknown'; seats: readonly number[]; code: string; error: string };

/** Recipients of an item that a call may go to. */
export function seatsOf(item: Item): number {
	if ('code' in item) return 0;
	return 'request' in item ? item.to.length : 1;
}

const kinds: ReadonlySet<unknown> = new Set<MailingEntry['kind']>([
	'mailing',
	'batch',
	'list',
	'anew',
	'complete',
	'released',
	'canceled',
	'intent',
	'outcome',
]);

/** Throws for a line that no mailing wrote. */
export function readEntry(line: unknown): MailingEntry {
	if (typeof line !== 'object' || line === null || !('kind' in line) || !kinds.has(line.kind))
		throw new Error('the ledger holds a line that no mailing wrote');
	// Behind a header that names its version, lines are written by mailings and by nothing else.
	return line as MailingEntry;
}
