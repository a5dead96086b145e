/** Subscribers as lists show them: by page and by key, as records, as tuples and as their JSON. */
import type { EncodedSubscribers, SubscriberTuple, TupleKeys } from '../api/exports.js';
import type { Subscriber, SubscriberFilter } from '../api/records.js';
import type { PageOf, Slice } from './store.js';

interface Chosen {
	list_id: number;
	filter: SubscriberFilter;
}

interface ChosenSlice extends Chosen {
	after: number;
	limit: number;
}

interface ChosenTuples extends ChosenSlice {
	keys: TupleKeys;
}

/** `null`: no such list. */
export interface SubscriberLists {
	pageSubscribers(c: PageOf & Chosen): Promise<Slice<Subscriber> | null>;
	/** The same, for a server. */
	encodeSubscriberPage(c: PageOf & Chosen): Promise<{ count: number; results: EncodedSubscribers } | null>;
	/** Up to `limit` subscribers with an id above `after`, ascending; never counts. */
	sliceSubscribers(c: ChosenSlice): Promise<Subscriber[] | null>;
	/** The same, for a server. */
	encodeSubscriberSlice(c: ChosenSlice): Promise<EncodedSubscribers | null>;
	/** As `sliceSubscribers`; null for `last`: there is none. */
	sliceSubscriberTuples(c: ChosenTuples): Promise<{ tuples: SubscriberTuple[]; last: number | null } | null>;
	/** The same, for a server. */
	encodeSubscriberTuples(c: ChosenTuples): Promise<EncodedSubscribers | null>;
}
