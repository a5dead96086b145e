/** Whether a message that is due may still go out, and in words why it may not. */
import type { EmailKey } from '../../api/address.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { SuppressionReason } from '../../api/suppressions.js';
import { mayReceive, strongest } from '../../engine/rules/subscription.js';
import type { Sql } from './sql.js';
import { findSuppressions } from './suppressions.js';

/** Whom a message is for. */
export interface Addressee {
	to_key: EmailKey;
	/** Null where it was sent to an address and not to a subscriber. */
	subscriber_id: number | null;
}

/**
 * Checked in the transaction of the lease: whoever bounced hard or complained since gets nothing, and no bulk mail goes
 * to anybody who is suppressed, was made inactive or deleted. The reason for people, on one line, never an address;
 * null: it is wanted.
 */
export function unwantedBecause(
	sql: Sql,
	{ to_key, subscriber_id }: Addressee,
	type: 'TRANSACTIONAL' | 'BULK',
	now: Micros,
): string | null {
	const reasons = findSuppressions(sql, to_key, now);
	if (!mayReceive(type, reasons)) return suppressedBecause(sql, to_key, reasons, type);
	if (type !== 'BULK' || subscriber_id === null) return null;
	const found = sql.get<{ is_active: number; disable_reason: string | null }>(
		'SELECT is_active, disable_reason FROM subscribers WHERE id = ?',
		subscriber_id,
	);
	if (found === undefined) return 'not sent: the subscriber was deleted';
	if (found.is_active === 1) return null;
	const because = found.disable_reason === null ? '' : ` (${found.disable_reason})`;
	return `not sent: the subscriber is inactive${because}`;
}

/** The strongest of those that stop it; without a row of its own the reason is an erasure. */
function suppressedBecause(
	sql: Sql,
	address: EmailKey,
	reasons: readonly SuppressionReason[],
	type: 'TRANSACTIONAL' | 'BULK',
): string {
	const reason = strongest(reasons.filter((one) => !mayReceive(type, [one])));
	const since = sql.get<{ created_at: Micros }>(
		'SELECT created_at FROM suppressions WHERE email_key = ? AND reason = ?',
		address,
		reason,
	);
	if (since === undefined) return 'not sent: the person behind the address was erased';
	return `not sent: the address is suppressed, ${reason} since ${formatDateTime(since.created_at).slice(0, 19)}Z`;
}
