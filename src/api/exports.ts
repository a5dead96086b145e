/** Reading a list of any size: our extension of the service document. */
import type { Call, PageRequest } from './api.js';
import type { Page, Subscriber, SubscriberFilter } from './records.js';

/** Subscribers of a list after an id, ascending. `next` is the id to continue after; null at the end. */
export interface SubscriberSlice {
	results: Subscriber[];
	next: number | null;
}

export interface ExportRequest extends SubscriberFilter {
	after: number;
	limit: number;
}

/** Reading a list of any size: by key, so that the last slice costs as much as the first. It is no snapshot. */
export interface Exports {
	/** Throws `not_found` for an unknown list. At most 1,000 a slice. */
	slice(listId: number, request: ExportRequest, call?: Call): Promise<SubscriberSlice>;
}

/**
 * Subscribers as a store reads them for a server. As the text that the database writes, they reach the socket from the
 * thread that reads without an object for each.
 */
export interface EncodedSubscribers {
	/** An array of records. */
	json: string;
	length: number;
	/** The id of the last one; null: there is none. */
	last: number | null;
}

/** An array of records within an answer, as its JSON. */
export class Encoded {
	readonly json: string;
	readonly length: number;

	constructor({ json, length }: EncodedSubscribers) {
		this.json = json;
		this.length = length;
	}
}

/** Reads for a server, with the errors of those that they stand for. */
export interface EncodedReads {
	/** As `page` of the subscribers of a list. */
	page(listId: number, request: PageRequest & SubscriberFilter): Promise<Page<Subscriber, Encoded>>;
	/** As `slice` of the exports. */
	slice(
		listId: number,
		request: ExportRequest,
		call?: Call,
	): Promise<{ results: Encoded; next: number | null }>;
}
