/** What a store is asked about suppressions by name; what events do to them is part of recording those. */
import type { EmailKey } from '../api/address.js';
import type { Micros } from '../api/datetime.js';
import type {
	NewSuppression,
	Suppression,
	SuppressionAck,
	SuppressionFilter,
	SuppressionReason,
	SuppressionRemoval,
} from '../api/suppressions.js';

/** In the order of address and reason; never what has expired by `now`. */
export interface SuppressionReads {
	/** `page` ≥ 1; a page past the end is an empty slice with the true count. */
	pageSuppressions(c: {
		page: number;
		page_size: number;
		filter: SuppressionFilter;
		now: Micros;
	}): Promise<{ count: number; results: Suppression[] }>;
	/** Up to `limit` of them behind a key (`null`: from the first); never counts. */
	sliceSuppressions(c: {
		after: { email_key: EmailKey; reason: string } | null;
		limit: number;
		filter: SuppressionFilter;
		now: Micros;
	}): Promise<Suppression[]>;
	/** `null`: it does not stand. */
	findSuppression(c: {
		email_key: EmailKey;
		reason: SuppressionReason;
		now: Micros;
	}): Promise<Suppression | null>;
	/** What `putSuppressions` would answer if each row came alone. */
	compareSuppressions(c: { rows: readonly NewSuppression[]; now: Micros }): Promise<SuppressionAck>;
}

export interface SuppressionWrites {
	/** Those without an end make the subscribers with their address inactive. Erased addresses are rejected. */
	putSuppressions(c: { rows: readonly NewSuppression[]; now: Micros }): Promise<SuppressionAck>;
	/** One reason or (`null`) all of an address; subscribers stay as they are. `null`: none of them stands. */
	removeSuppressions(c: {
		email_key: EmailKey;
		reason: SuppressionReason | null;
		now: Micros;
	}): Promise<SuppressionRemoval | null>;
}
