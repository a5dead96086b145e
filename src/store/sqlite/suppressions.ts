/** Addresses that get no mail, and why; they outlive the subscribers they came from. */
import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { SuppressionReason, SuppressionSource } from '../../api/suppressions.js';
import { type Addition, additionOf } from '../../engine/rules/suppressions.js';
import { isErased } from './erased.js';
import { moveCounters } from './lists.js';
import type { Sql } from './sql.js';

/**
 * Reasons against an address that have not expired. Who was erased has left for good: no bulk mail, as for those who
 * unsubscribed, although no row says so any more.
 */
export function findSuppressions(sql: Sql, address: EmailKey, now: Micros): SuppressionReason[] {
	const stored = storedReasons(sql, address, now);
	return stored.length === 0 && isErased(sql, address) ? ['UNSUBSCRIBED'] : stored;
}

/** Those of the stored reasons that have no end. */
export function findLasting(sql: Sql, address: EmailKey): SuppressionReason[] {
	return storedReasons(sql, address, null);
}

/** `null`: those without an end alone. */
function storedReasons(sql: Sql, address: EmailKey, now: Micros | null): SuppressionReason[] {
	return sql
		.all<{ reason: SuppressionReason }>(
			`SELECT reason
			FROM suppressions
			WHERE email_key = ? AND (expires_at IS NULL OR expires_at > ?)
			ORDER BY reason`,
			address,
			now,
		)
		.map(({ reason }) => reason);
}

/** False spares an import the look at each address. What has expired counts until it is deleted. */
export function hasSuppressions(sql: Sql): boolean {
	return sql.number('SELECT EXISTS (SELECT 1 FROM suppressions)') === 1;
}

/** What happened to an address stands against it for good. A reason that stands already keeps its first time. */
export function suppress(
	sql: Sql,
	{ address, reason, source, now }: Omit<WantedSuppression, 'created_at' | 'expires_at'> & { now: Micros },
): void {
	addSuppression(sql, { address, reason, source, created_at: now, expires_at: null }, now);
}

export interface WantedSuppression {
	address: EmailKey;
	reason: SuppressionReason;
	source: SuppressionSource;
	created_at: Micros;
	/** `null`: it has no end. */
	expires_at: Micros | null;
}

/** Does what `compareSuppression` says: makes it, changes when it ends, or nothing. Subscribers are the caller’s. */
export function addSuppression(sql: Sql, wanted: WantedSuppression, now: Micros): Addition {
	const { address, reason, source, created_at, expires_at } = wanted;
	const addition = compareSuppression(sql, wanted, now);
	if (addition === 'created') {
		sql.run(
			`INSERT OR REPLACE INTO suppressions (email_key, reason, source, created_at, expires_at)
			VALUES (?, ?, ?, ?, ?)`,
			address,
			reason,
			source,
			created_at,
			expires_at,
		);
	}
	if (addition === 'updated') {
		sql.run(
			'UPDATE suppressions SET expires_at = ? WHERE email_key = ? AND reason = ?',
			expires_at,
			address,
			reason,
		);
	}
	return addition;
}

/** What adding it would do. */
export function compareSuppression(
	sql: Sql,
	{ address, reason, expires_at }: Pick<WantedSuppression, 'address' | 'reason' | 'expires_at'>,
	now: Micros,
): Addition {
	const stored = sql.get<{ expires_at: Micros | null }>(
		'SELECT expires_at FROM suppressions WHERE email_key = ? AND reason = ?',
		address,
		reason,
	);
	return additionOf(stored ?? null, { expires_at }, now);
}

/** Those reasons alone, expired or not; an erasure stays. */
export function liftSuppressions(sql: Sql, address: EmailKey, reasons: readonly SuppressionReason[]): void {
	for (const reason of reasons) {
		sql.run('DELETE FROM suppressions WHERE email_key = ? AND reason = ?', address, reason);
	}
}

/** Which rows of an address an event concerns: all, or the one of a list and the one the message was made for. */
export interface Whose {
	address: EmailKey;
	list_id: number | null;
	subscriber_id: number | null;
}

/**
 * Makes the subscribers of an address inactive. Whoever is inactive without a reason of the engine gets this one;
 * an earlier reason stays.
 */
export function deactivate(sql: Sql, whose: Whose, reason: SuppressionReason): void {
	for (const row of rowsOf(sql, whose)) {
		if (row.is_active === 1) moveCounters(sql, row.list_id, { active: -1, inactive: 1 });
		sql.run(
			`UPDATE subscribers
			SET is_active = 0, disable_reason = ?, soft_bounces = 0, soft_bounced_since = NULL
			WHERE id = ?`,
			row.is_active === 1 ? reason : (row.disable_reason ?? reason),
			row.id,
		);
	}
}

interface ActivityRow {
	id: number;
	list_id: number;
	is_active: number;
	disable_reason: string | null;
}

function rowsOf(sql: Sql, { address, list_id, subscriber_id }: Whose): ActivityRow[] {
	const columns = 'id, list_id, is_active, disable_reason';
	if (list_id === null) {
		return sql.all<ActivityRow>(`SELECT ${columns} FROM subscribers WHERE email_key = ?`, address);
	}
	return sql.all<ActivityRow>(
		`SELECT ${columns} FROM subscribers WHERE email_key = ? AND list_id = ?
		UNION
		SELECT ${columns} FROM subscribers WHERE id = ? AND list_id = ?`,
		address,
		list_id,
		subscriber_id,
		list_id,
	);
}
