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

export interface SuppressionReads {
	pageSuppressions(c: {
		page: number;
		page_size: number;
		filter: SuppressionFilter;
		now: Micros;
	}): Promise<{ count: number; results: Suppression[] }>;
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
	compareSuppressions(c: { rows: readonly NewSuppression[]; now: Micros }): Promise<SuppressionAck>;
}

export interface SuppressionWrites {
	/** Suppressions without an end make their subscribers inactive. Erased addresses and missing lists are rejected. */
	putSuppressions(c: { rows: readonly NewSuppression[]; now: Micros }): Promise<SuppressionAck>;
	/** `null` removes all reasons, or those of any list; subscribers stay unchanged. Null: none was found. */
	removeSuppressions(c: {
		email_key: EmailKey;
		reason: SuppressionReason | null;
		list_id: number | null;
		now: Micros;
	}): Promise<SuppressionRemoval | null>;
}
