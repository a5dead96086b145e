/** What adding a suppression does to the one that stands for the same address and reason. */
import type { Micros } from '../../api/datetime.js';
import type { NewSuppression } from '../../api/suppressions.js';
import type { RejectedRow } from './import-rows.js';

/** `updated`: it ends later than it did, or not at all. */
export type Addition = 'created' | 'updated' | 'unchanged';

/**
 * Adding never weakens: of two ends the later one stands, and none is later than any. One that has expired counts for
 * nothing, although nobody has swept it away. `stored`: null where there is none.
 */
export function additionOf(
	stored: { expires_at: Micros | null } | null,
	wanted: { expires_at: Micros | null },
	now: Micros,
): Addition {
	if (stored === null || hasEnded(stored, now)) return 'created';
	if (stored.expires_at === null) return 'unchanged';
	return wanted.expires_at === null || wanted.expires_at > stored.expires_at ? 'updated' : 'unchanged';
}

/** Whether a row cannot be added at this moment, whatever is stored. */
export function refusalOf(row: NewSuppression, now: Micros): RejectedRow | null {
	if (!hasEnded(row, now)) return null;
	return { kind: 'rejected', code: 'expired', error: 'expires_at: This time is past.' };
}

function hasEnded({ expires_at }: { expires_at: Micros | null }, now: Micros): boolean {
	return expires_at !== null && expires_at <= now;
}
