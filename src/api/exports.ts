/** Reading a list of any size: our extension of the service document. */
import type { Call } from './api.js';
import type { Subscriber, SubscriberFilter } from './records.js';

/** Subscribers of a list after an id, ascending. `next` is the id to continue after; null at the end. */
export interface SubscriberSlice {
	results: Subscriber[];
	next: number | null;
}

/** Reading a list of any size: by key, so that the last slice costs as much as the first. It is no snapshot. */
export interface Exports {
	/** Throws `not_found` for an unknown list. At most 1,000 a slice. */
	slice(
		listId: number,
		request: SubscriberFilter & { after: number; limit: number },
		call?: Call,
	): Promise<SubscriberSlice>;
}
