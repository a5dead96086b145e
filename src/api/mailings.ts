/** What a mailing is made from besides recipients, and what is told of it: the plain data of `Mailings`. */
import type { MailingStatus } from './capabilities.js';
import type { MessageState, Uuid } from './records.js';

/**
 * What a mailing of send requests shares: nothing but its rows' source. Each request brings its own content; `put`
 * takes no recipients then, and `putRequests` nothing else.
 */
export interface RequestsSpec {
	requests: true;
	strict_vars?: boolean;
	source?: MailingSource;
}

/**
 * Where rows come from and how they are read, as texts by name: `sha256`, `encoding`, … Whatever decides which rows
 * there are is in it. `path` alone is not compared: a file that was moved is still the same file.
 */
export type MailingSource = Readonly<Record<string, string>>;

/** A mailing as it is listed: what it is and how it was opened, its bodies left out. */
export interface Mailing extends Omit<MailingStatus, 'messages'> {
	/** Rows put so far. */
	position: number;
	/** All its rows were put: see `Mailings.complete`. */
	is_complete: boolean;
	type: 'TRANSACTIONAL' | 'BULK';
	/** What its recipients read; null for send requests. */
	subject: string | null;
	list_id: number | null;
	source: MailingSource | null;
	/** True: its rows are send requests. */
	requests: boolean;
	date_created: string;
}

/** What became of one recipient of the rows put, or of one row that could not be taken. */
export interface MailingResult {
	/** Of the source, as it was given with the row. */
	line: number | null;
	/** As it was given; empty where there was none. */
	to: string;
	/** The message; null when none was made. */
	id: Uuid | null;
	state: MessageState | 'suppressed' | 'rejected';
	/** Why there is no message, as a reject's code; else null. */
	code: string | null;
	/** A reject's words, or the last reply of the mail server. */
	text: string | null;
	attempts: number;
}

/** `next`: give it as `after` for what follows; null at the end. */
export interface MailingResults {
	results: readonly MailingResult[];
	next: number | null;
}

/** One send request of a mailing of requests; checked as a send call is. */
export interface RequestRow {
	request: unknown;
	/** Where it is in its source, for people: kept for the results. */
	line?: number;
	/** It is no request at all (no JSON, too large): `request` is not looked at. */
	refused?: { code: string; error: string };
}

/** At most 4 MiB; `first` counts requests from 0, so a lost answer is put again. */
export interface RequestBatch {
	first: number;
	requests: readonly RequestRow[];
}

/** Which results: those behind `after` (0 = all), at most `limit` (1,000). */
export interface ResultsRequest {
	after?: number;
	limit?: number;
	only?: 'findings';
}
