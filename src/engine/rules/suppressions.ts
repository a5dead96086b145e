/** The scope of a suppression, and the effect of adding one to a stored one of the same address, reason and list. */
import type { Micros } from '../../api/datetime.js';
import type { NewSuppression, SuppressionReason } from '../../api/suppressions.js';
import type { RejectedRow } from './import-rows.js';

/** Only unsubscriptions: a dead mailbox or a complaint applies to every list. */
export function mayBeOfOneList(reason: SuppressionReason): boolean {
	return reason === 'UNSUBSCRIBED';
}

/**
 * The scope of an unsubscription unless the person chooses: the list whose mail carried the link, or all (a setting).
 */
export type UnsubscribeScope = 'list' | 'all';

/**
 * The list of a suppression; `null`: all lists. `list_id`: that of the mail or the import it comes from, `null` where
 * there is none, or no longer.
 */
export function suppressedList(
	reason: SuppressionReason,
	list_id: number | null,
	scope: UnsubscribeScope,
): number | null {
	return mayBeOfOneList(reason) && scope === 'list' ? list_id : null;
}

/** `updated`: it ends later than it did, or not at all. */
export type Addition = 'created' | 'updated' | 'unchanged';

/**
 * Adding never weakens: the later end counts, and no end is later than any. An expired one does not count, even before
 * it is deleted. `stored`: null without a suppression.
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

/** A suppression past its end does not count. */
export function hasEnded({ expires_at }: { expires_at: Micros | null }, now: Micros): boolean {
	return expires_at !== null && expires_at <= now;
}
