/** Addresses that get no mail, and why. A suppression outlives its subscribers. `recipients.ts` adds suppressions. */
import { createHmac } from 'node:crypto';
import type { EmailKey } from '../../api/address.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { SuppressionReason } from '../../api/suppressions.js';
import { isWanted, stopping, type UnsubscribeScope } from '../../engine/rules/subscribers.js';
import { findKeys } from './keys.js';
import { column, exists, type Sql } from './sql.js';

/** Stands for all lists, because a key column cannot be NULL. */
export const allLists = 0;

export async function unsubscribeScope(sql: Sql): Promise<UnsubscribeScope> {
	const row = await sql.get<{ value: string }>("SELECT value FROM settings WHERE name = 'unsubscribe_scope'");
	return row?.value === 'all' ? 'all' : 'list';
}

/** An address and a list. Without a list (`null`), any unsubscription of the address stops the mail. */
export interface MailTo {
	address: EmailKey;
	list_id: number | null;
}

/** Returns unexpired reasons. An erased person counts as unsubscribed, although no row says so. */
export type ReasonsAgainst = (mail: MailTo) => Promise<SuppressionReason[]>;

/** Reads only once, for many mails, whether suppressions exist. Callers must not add a suppression meanwhile. */
export async function openSuppressions(sql: Sql, now: Micros): Promise<ReasonsAgainst> {
	const [[hasAny, hasErased] = [0, 0]] = await sql.tuples<[number, number]>(
		'SELECT EXISTS (SELECT 1 FROM suppressions), EXISTS (SELECT 1 FROM erased)',
	);
	const isErased = hasErased === 1 ? await openErased(sql) : null;
	return async (mail) => {
		const stored = hasAny === 1 ? await storedReasons(sql, mail, now) : [];
		return stored.length === 0 && (await isErased?.(mail.address)) ? ['UNSUBSCRIBED'] : stored;
	};
}

export async function findSuppressions(sql: Sql, mail: MailTo, now: Micros): Promise<SuppressionReason[]> {
	const [stored, erased] = await sql.together([
		() => storedReasons(sql, mail, now),
		() => isErased(sql, mail.address),
	]);
	return stored.length === 0 && erased ? ['UNSUBSCRIBED'] : stored;
}

/** Returns reasons that do not expire. `now` is NULL, which excludes every reason with an `expires_at`. */
export async function findLasting(sql: Sql, mail: MailTo): Promise<SuppressionReason[]> {
	return await storedReasons(sql, mail, null);
}

export const isAbout = `email_key = ? AND (list_id = ${allLists} OR coalesce(?, list_id) = list_id)`;

function storedReasons(
	sql: Sql,
	{ address, list_id }: MailTo,
	now: Micros | null,
): Promise<SuppressionReason[]> {
	return column<SuppressionReason>(
		sql,
		`SELECT DISTINCT reason
		FROM suppressions
		WHERE ${isAbout} AND (expires_at IS NULL OR expires_at > ?)
		ORDER BY reason`,
		[address, list_id, now],
	);
}

export function suppressedAmong(sql: Sql, addresses: readonly EmailKey[]): Promise<EmailKey[]> {
	return column<EmailKey>(
		sql,
		`SELECT DISTINCT s.email_key
		FROM ${sql.dialect.table({ address: 'TEXT' }, 'asked')}
		CROSS JOIN suppressions s
		WHERE s.email_key = asked.address`,
		[JSON.stringify(addresses.map((address) => ({ address })))],
	);
}

interface Addressee {
	to_key: EmailKey;
	list_id: number | null;
	subscriber_id: number | null;
	is_active: number | null;
	disable_reason: string | null;
}

/** Returns why the message must not be sent, as one line without the address; null if it may be sent. */
export async function unwantedBecause(
	sql: Sql,
	{ to_key: address, list_id, subscriber_id, is_active, disable_reason }: Addressee,
	type: 'TRANSACTIONAL' | 'BULK',
	reasonsAgainst: ReasonsAgainst,
): Promise<string | null> {
	const reasons = await reasonsAgainst({ address, list_id });
	if (!isWanted(type, { reasons, is_active: null })) {
		const reason = stopping(type, reasons);
		const [since = null] = await column<Micros | null>(
			sql,
			`SELECT min(created_at) FROM suppressions WHERE ${isAbout} AND reason = ?`,
			[address, list_id, reason],
		);
		if (since === null) return 'not sent: the person behind the address was erased';
		return `not sent: the address is suppressed, ${reason} since ${formatDateTime(since).slice(0, 19)}Z`;
	}
	if (type !== 'BULK' || subscriber_id === null || is_active === 1) return null;
	if (is_active === null) return 'not sent: the subscriber was deleted';
	const because = disable_reason === null ? '' : ` (${disable_reason})`;
	return `not sent: the subscriber is inactive${because}`;
}

/** Returns null if no address was erased, as in most databases. */
export async function openErased(sql: Sql): Promise<((address: EmailKey) => Promise<boolean>) | null> {
	if (!(await exists(sql, 'SELECT 1 FROM erased'))) return null;
	const keys = await erasureKeys(sql);
	return async (address) => {
		for (const { secret } of keys)
			if (await exists(sql, 'SELECT 1 FROM erased WHERE email_hash = ?', [erasedHash(secret, address)]))
				return true;
		return false;
	};
}

export async function isErased(sql: Sql, address: EmailKey): Promise<boolean> {
	return (await openErased(sql))?.(address) ?? false;
}

export function erasureKeys(sql: Sql) {
	return findKeys(sql, 'erasure');
}

/** Without `secret`, nobody can find the address by hashing guesses. */
export function erasedHash(secret: string, address: EmailKey): string {
	return createHmac('sha256', Buffer.from(secret, 'base64url'))
		.update('mailctl erased 1\0')
		.update(address)
		.digest('base64url');
}
