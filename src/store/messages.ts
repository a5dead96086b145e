/** Messages as lists show them: by page and by key. */
import type { MessageFilter } from '../api/capabilities.js';
import type { Micros } from '../api/datetime.js';
import type { Message } from '../api/records.js';
import type { PageOf, Seen, Slice } from './store.js';

type StoredMessageFilter = MessageFilter & { to_key?: string; since_at?: Micros };

/** Where a message stands in the order of pages. */
export interface MessagePlace {
	submission_seq: number;
	id: number;
}

export interface MessageLists {
	/** With a filter `count` is exact up to 100,000, or to the page behind this one. */
	pageMessages(
		c: PageOf & Seen & { filter: StoredMessageFilter },
	): Promise<Slice<Message> & { last: MessagePlace | null }>;
	/** The same by key. `last`: behind it more may follow; null: nothing does. */
	sliceMessages(
		c: Seen & { filter: StoredMessageFilter; after: MessagePlace; limit: number },
	): Promise<{ results: Message[]; last: MessagePlace | null }>;
}
