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

/** In the order of address, reason and list (suppressions of all lists first), without those expired by `now`. */
export interface SuppressionReads {
	pageSuppressions(c: {
		page: number;
		page_size: number;
		filter: SuppressionFilter;
		now: Micros;
	}): Promise<{ count: number; results: Suppression[] }>;
	/** Up to `limit` of them after a key (`null`: from the first); never counts. */
	sliceSuppressions(c: {
		after: { email_key: EmailKey; reason: string; list_id: number | null } | null;
		limit: number;
		filter: SuppressionFilter;
		now: Micros;
	}): Promise<Suppression[]>;
	findSuppression(c: {
		email_key: EmailKey;
		reason: SuppressionReason;
		list_id: number | null;
		now: Micros;
	}): Promise<Suppression | null>;
	/** The answer that `putSuppressions` would give if each row came alone. */
	compareSuppressions(c: { rows: readonly NewSuppression[]; now: Micros }): Promise<SuppressionAck>;
}

export interface SuppressionWrites {
	/**
	 * Suppressions without an end make the subscribers with their address inactive, in their list or in all. Erased
	 * addresses and missing lists are rejected.
	 */
	putSuppressions(c: { rows: readonly NewSuppression[]; now: Micros }): Promise<SuppressionAck>;
	/**
	 * Removes one reason or (`null`) all of an address, of one list or (`null`) of any; subscribers stay unchanged.
	 * `null`: none was found.
	 */
	removeSuppressions(c: {
		email_key: EmailKey;
		reason: SuppressionReason | null;
		list_id: number | null;
		now: Micros;
	}): Promise<SuppressionRemoval | null>;
}
