import type { EmailKey } from '../api/address.js';
import type { Ack, ImportCounts, MessageFilter } from '../api/capabilities.js';
import type { Clock, Day, Micros } from '../api/datetime.js';
import type { FieldErrors } from '../api/errors.js';
import type { TupleKeys } from '../api/exports.js';
import type { EventType, SubscriberFilter, Uuid } from '../api/records.js';
import type { BounceCounts, Joined } from '../api/reports.js';
import type { Audience } from '../engine/rules/outcomes.js';
import type { Queue, Reads, Writes } from './operations.js';
import type { QueueWorker } from './queue.js';

export interface Store {
	readonly reads: Reads;
	readonly writes: Writes;
	readonly queue: Queue;
	/** The database server's clock, which several machines share. If absent, use this machine's clock. */
	readonly clock?: Clock;
	onReady?(listener: () => void): () => void;
	close(): Promise<void>;
}

/** After an abort, an operation in slices starts no new slice and rejects with the reason. A repeat continues it. */
export interface Means {
	signal?: AbortSignal | undefined;
}

export interface PageOf {
	page: number;
	page_size: number;
}

export interface Slice<T> {
	count: number;
	results: T[];
}

export type Written<T> =
	| { kind: 'written'; record: T }
	| { kind: 'not_found' }
	| { kind: 'refused'; errors: FieldErrors };

/** With `only_of`, records of other clients count as missing. */
export interface Seen {
	only_of?: string;
}

/** Absent members keep their value. `unset_meta` and `merge_meta` apply to the stored meta. */
export interface SubscriberPatch {
	email?: string;
	name?: string;
	meta?: Record<string, unknown>;
	merge_meta?: Record<string, unknown>;
	unset_meta?: readonly string[];
	/** With `default`, a new subscriber is active unless its address has a suppression that never expires. */
	is_active?: boolean | 'default';
}

export type OtherProcess = Pick<QueueWorker, 'host' | 'pid'> & { role: string };

export type MessageChange = { kind: 'changed' } | { kind: 'not_found' } | { kind: 'refused'; why: string };

export interface TrackedEvent {
	message: Uuid;
	type: Exclude<EventType, 'CREATED' | 'SENT'>;
	at: Micros;
	link: number | null;
	machine: boolean;
	/** An event that comes sooner than this after the sending counts as a bot's. */
	too_soon?: Micros;
	from_all_lists?: true;
	ip: string | null;
	user_agent: string | null;
	url: string | null;
	smtp_code: string | null;
	diagnostic: string | null;
}

export interface Chosen {
	list_id: number;
	filter: SubscriberFilter;
}

export interface ChosenSlice extends Chosen {
	after: number;
	limit: number;
}

export interface ChosenTuples extends ChosenSlice {
	keys: TupleKeys;
	/** The caller checks `meta`, so the store returns its text unchecked, which takes an eighth less time. */
	isChecked?: true;
}

export type StoredMessageFilter = MessageFilter & { to_key?: string; since_at?: Micros };

export interface MessagePlace {
	submission_seq: number;
	id: number;
}

/** Asks whether the valid members of an input conflict with stored data. `id` is null for a new record. */
export type Question =
	| { kind: 'subscriber'; list_id: number; id: number | null; patch: SubscriberPatch; now: Micros }
	| { kind: 'field'; id: number | null; variable?: string }
	| { kind: 'template'; id: string | null; name?: string };

/**
 * `known`: this mail, or a report of the same kind about the message, has been recorded before. `unmatched`: the
 * message or recipient does not exist. `in_flight`: the message is leased, so try again after its outcome.
 */
export type ReportOutcome =
	| ({ kind: 'recorded' } & RecordedReport)
	| { kind: 'known' }
	| { kind: 'unmatched' }
	| { kind: 'in_flight' };

export interface RecordedReport {
	effect: ReportEffect;
	address: EmailKey;
}

export type ReportEffect = 'hard_bounce' | 'soft_bounce' | 'complaint';

export type ImportAck =
	| { kind: 'acknowledged'; ack: Ack<ImportCounts> }
	| { kind: 'gap'; position: number }
	| { kind: 'not_found' }
	| { kind: 'list_gone' };

export type RowIntent = 'create' | 'update';

export interface RowImport {
	import: number;
	position: number;
	counts: ImportCounts;
	reasons_left_out: number;
	last: { first: number; ack: Ack<ImportCounts> } | null;
	intents: readonly { row: number; intent: RowIntent }[];
}

export interface RowBatch {
	first: number;
	ack: Ack<ImportCounts>;
	reasons_left_out: number;
	taken: readonly string[];
}

export interface ReportFigures {
	/** Counts distinct messages by the day of their first event of each type. Omits days and types without events. */
	daily: { day: Day; type: EventType; count: number }[];
	attempted: number;
}

/** Counts distinct messages by their first event of each type; `human` excludes bots. */
export interface TypedCount {
	type: EventType | 'COMPLAINED';
	audience: Audience;
	count: number;
}

export interface DetailFigures {
	time_zone: string;
	bounced: number;
	neverSent: number;
	days: (TypedCount & { day: Day })[];
	/** `hour` counts hours since 1970 in local time. Covers at most 72 hours, from the first one with a sent message. */
	hours: (TypedCount & { hour: number })[];
	week: (TypedCount & { hour: number })[];
	domains: ({ domain: string } & BounceCounts)[];
	other_domains: number;
	codes: ({ code: string } & BounceCounts)[];
	lists: ListFigures[] | null;
}

export interface ListFigures {
	id: number;
	name: string;
	active: number;
	days: { day: Day; kind: keyof Joined; count: number }[];
}

export interface LinkFigures {
	contents: { sha256: string; submission: Uuid }[];
	figures: { sha256: string; link: number; audience: Audience; clicks: number; messages: number }[];
}

export interface CampaignLife {
	days: { from: Day; to: Day } | null;
}
