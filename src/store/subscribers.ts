/** Subscribers as lists show them: by page and by key, as records, as tuples and as their JSON. */
import type { EncodedSubscribers, TupleKeys } from '../api/exports.js';
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
	/** The caller checks what it parses: a stored `meta` stands in the text as it is, which saves an eighth. */
	isChecked?: true;
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
	/** The same as tuples, for servers and exports. */
	encodeSubscriberTuples(c: ChosenTuples): Promise<EncodedSubscribers | null>;
}
