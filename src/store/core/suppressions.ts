/**
 * Addresses that get no mail, and why; they outlive the subscribers they came from. A suppression is of one list or of
 * all. Permanent suppressions and the rows of their subscribers always agree: a change of the one changes the other
 * here.
 */
import type { EmailKey } from '../../api/address.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { SuppressionReason, SuppressionSource } from '../../api/suppressions.js';
import { isWanted, stopping } from '../../engine/rules/subscription.js';
import {
	type Addition,
	additionOf,
	hasEnded,
	mayBeOfOneList,
	type UnsubscribeScope,
} from '../../engine/rules/suppressions.js';
import { isErased, openErased } from './erasures.js';
import { moveCounters } from './list-counters.js';
import type { Sql } from './sql.js';

/** Stored for a suppression of all lists: a part of the key is never NULL. */
export const allLists = 0;

/** The setting of the database. */
export async function unsubscribeScope(sql: Sql): Promise<UnsubscribeScope> {
	const row = await sql.get<{ value: string }>("SELECT value FROM settings WHERE name = 'unsubscribe_scope'");
	return row?.value === 'all' ? 'all' : 'list';
}

/** Mail to an address: of a list, or (`null`) of none, which any unsubscription of the address stops. */
export interface MailTo {
	address: EmailKey;
	list_id: number | null;
}

/**
 * Reasons against mail that have not expired. An erased person gets no bulk mail, as after an unsubscription, although
 * no row says so.
 */
export type ReasonsAgainst = (mail: MailTo) => Promise<SuppressionReason[]>;

/** For many mails, while no suppression is added: asks once whether there is any. */
export async function openSuppressions(sql: Sql, now: Micros): Promise<ReasonsAgainst> {
	const [hasAny, isErased] = await sql.together([() => hasSuppressions(sql), () => openErased(sql)]);
	return async (mail) => {
		const stored = hasAny ? await storedReasons(sql, mail, now) : [];
		return stored.length === 0 && (await isErased?.(mail.address)) ? ['UNSUBSCRIBED'] : stored;
	};
}

/** As `ReasonsAgainst`, for one mail. */
export async function findSuppressions(sql: Sql, mail: MailTo, now: Micros): Promise<SuppressionReason[]> {
	const [stored, erased] = await sql.together([
		() => storedReasons(sql, mail, now),
		() => isErased(sql, mail.address),
	]);
	return stored.length === 0 && erased ? ['UNSUBSCRIBED'] : stored;
}

/** The stored reasons that have no end. */
export async function findLasting(sql: Sql, mail: MailTo): Promise<SuppressionReason[]> {
	return await storedReasons(sql, mail, null);
}

/** Selects stored suppressions that apply to a mail; its values are `mailValues`. */
const isAbout = `email_key = ? AND (list_id = ${allLists} OR coalesce(?, list_id) = list_id)`;

/** `null`: only those without an end. */
async function storedReasons(
	sql: Sql,
	{ address, list_id }: MailTo,
	now: Micros | null,
): Promise<SuppressionReason[]> {
	return (
		await sql.all<{ reason: SuppressionReason }>(
			`SELECT DISTINCT reason
			FROM suppressions
			WHERE ${isAbout} AND (expires_at IS NULL OR expires_at > ?)
			ORDER BY reason`,
			address,
			list_id,
			now,
		)
	).map(({ reason }) => reason);
}

/** Since when this reason stops mail; `undefined`: nothing is stored. */
export async function suppressedSince(
	sql: Sql,
	{ address, list_id }: MailTo,
	reason: SuppressionReason | null,
): Promise<Micros | undefined> {
	const row = await sql.get<{ since: Micros | null }>(
		`SELECT min(created_at) AS since FROM suppressions WHERE ${isAbout} AND reason = ?`,
		address,
		list_id,
		reason,
	);
	return row?.since ?? undefined;
}

/** False saves an import the look-up of each address. An expired suppression counts until it is deleted. */
export async function hasSuppressions(sql: Sql): Promise<boolean> {
	return (await sql.number('SELECT EXISTS (SELECT 1 FROM suppressions)')) === 1;
}

/** A suppression to be stored. */
export interface WantedSuppression extends MailTo {
	reason: SuppressionReason;
	source: SuppressionSource;
	created_at: Micros;
	/** `null`: it has no end. */
	expires_at: Micros | null;
}

/**
 * Suppresses an address permanently, and makes its subscribers inactive: those of the list, or all. An existing reason
 * keeps its first time.
 */
export async function stopMail(
	sql: Sql,
	{ now, ...stopped }: Omit<WantedSuppression, 'created_at' | 'expires_at'> & { now: Micros },
): Promise<void> {
	await addSuppression(sql, { ...stopped, created_at: now, expires_at: null }, now);
}

/**
 * Does what `compareSuppression` says: adds it, changes its end, or nothing. Without an end the subscribers become
 * inactive, also for an existing suppression: one may have been activated since, or only passed over.
 */
export async function addSuppression(sql: Sql, wanted: WantedSuppression, now: Micros): Promise<Addition> {
	const { address, reason, source, created_at, expires_at } = wanted;
	const list_id = wanted.list_id ?? allLists;
	const addition = await compareSuppression(sql, wanted, now);
	if (addition === 'created') {
		sql.write(
			// Another one of this reason has ended.
			`INSERT INTO suppressions (email_key, reason, list_id, source, created_at, expires_at)
			VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (email_key, reason, list_id) DO UPDATE
			SET source = excluded.source, created_at = excluded.created_at, expires_at = excluded.expires_at`,
			address,
			reason,
			list_id,
			source,
			created_at,
			expires_at,
		);
	}
	if (addition === 'updated') {
		sql.write(
			'UPDATE suppressions SET expires_at = ? WHERE email_key = ? AND reason = ? AND list_id = ?',
			expires_at,
			address,
			reason,
			list_id,
		);
	}
	if (expires_at === null) await deactivate(sql, wanted, reason);
	return addition;
}

/** The effect of adding the suppression, without a write. */
export async function compareSuppression(
	sql: Sql,
	{ address, list_id, reason, expires_at }: Pick<WantedSuppression, 'reason' | 'expires_at'> & MailTo,
	now: Micros,
): Promise<Addition> {
	const stored = await sql.get<{ expires_at: Micros | null }>(
		'SELECT expires_at FROM suppressions WHERE email_key = ? AND reason = ? AND list_id = ?',
		address,
		reason,
		list_id ?? allLists,
	);
	return additionOf(stored ?? null, { expires_at }, now);
}

const storedColumns = 'email_key, reason, source, created_at, expires_at';

interface StoredSuppression {
	email_key: EmailKey;
	reason: SuppressionReason;
	source: SuppressionSource;
	created_at: Micros;
	expires_at: Micros | null;
}

/**
 * Lets mail of a list go to an address again; an erasure stays. A suppression of all lists stays one of each other list
 * that has the address: joining one list again says nothing about the others.
 */
export async function liftSuppressions(
	sql: Sql,
	{ address, list_id }: { address: EmailKey; list_id: number },
	{ reasons, now }: { reasons: readonly SuppressionReason[]; now: Micros },
): Promise<void> {
	for (const reason of reasons) {
		const lifted = await sql.all<StoredSuppression & { list_id: number }>(
			`DELETE FROM suppressions
			WHERE email_key = ? AND reason = ? AND list_id IN (${allLists}, ?)
			RETURNING ${storedColumns}, list_id`,
			address,
			reason,
			list_id,
		);
		const ofAll = lifted.find((one) => one.list_id === allLists);
		if (ofAll !== undefined && mayBeOfOneList(reason)) await keepElsewhere(sql, ofAll, { list_id, now });
	}
}

async function keepElsewhere(
	sql: Sql,
	{ email_key: address, reason, source, created_at, expires_at }: StoredSuppression,
	{ list_id: here, now }: { list_id: number; now: Micros },
): Promise<void> {
	if (hasEnded({ expires_at }, now)) return;
	const others = await sql.all<{ list_id: number }>(
		'SELECT list_id FROM subscribers WHERE email_key = ? AND list_id <> ?',
		address,
		here,
	);
	for (const { list_id } of others)
		await addSuppression(sql, { address, list_id, reason, source, created_at, expires_at }, now);
}

/**
 * An unsubscription follows a person whose subscriber gets another address: it then applies to the new address in this
 * list too.
 */
export async function carryUnsubscription(
	sql: Sql,
	{ from, to, list_id }: { from: EmailKey; to: EmailKey; list_id: number },
	now: Micros,
): Promise<void> {
	const [stored] = await sql.all<StoredSuppression>(
		`SELECT ${storedColumns}
		FROM suppressions
		WHERE ${isAbout} AND reason = 'UNSUBSCRIBED' AND expires_at IS NULL
		ORDER BY created_at`,
		from,
		list_id,
	);
	if (stored === undefined) return;
	const { email_key: _, ...kept } = stored;
	await addSuppression(sql, { ...kept, address: to, list_id }, now);
}

/** Unsubscriptions of a deleted list become ones of all lists, as there is no other list they could belong to. */
export async function widenToAllLists(
	sql: Sql,
	{ list_id, now }: { list_id: number; now: Micros },
): Promise<void> {
	const ofList = await sql.all<StoredSuppression>(
		// suppressions_of_list
		`DELETE FROM suppressions WHERE list_id = ? RETURNING ${storedColumns}`,
		list_id,
	);
	for (const { email_key: address, ...stored } of ofList)
		if (!hasEnded(stored, now)) await addSuppression(sql, { ...stored, address, list_id: null }, now);
}

/**
 * Makes the subscribers of an address inactive, in a list or in all. A subscriber that is inactive without a reason of
 * the engine gets this reason; an earlier reason stays.
 */
async function deactivate(sql: Sql, { address, list_id }: MailTo, reason: SuppressionReason): Promise<void> {
	const rows = await sql.all<{
		id: number;
		list_id: number;
		is_active: number;
		disable_reason: string | null;
	}>(
		// subscribers_by_key (email_key, list_id)
		`SELECT id, list_id, is_active, disable_reason
		FROM subscribers
		WHERE email_key = ? AND coalesce(?, list_id) = list_id`,
		address,
		list_id,
	);
	for (const row of rows) {
		if (row.is_active === 1) moveCounters(sql, row.list_id, { active: -1, inactive: 1 }, null);
		sql.write(
			`UPDATE subscribers
			SET is_active = 0, disable_reason = ?, soft_bounces = 0, soft_bounced_since = NULL
			WHERE id = ?`,
			row.is_active === 1 ? reason : (row.disable_reason ?? reason),
			row.id,
		);
	}
}

/** The recipient of a message. */
interface Addressee {
	to_key: EmailKey;
	/** The list of the message; null: none. */
	list_id: number | null;
	/** Null for an address without a subscriber. */
	subscriber_id: number | null;
	/** The subscriber's; null: it was deleted. */
	is_active: number | null;
	disable_reason: string | null;
}

/**
 * Checked in the transaction of the lease. An address with a hard bounce or complaint since gets no mail. No bulk mail
 * goes to an address that was suppressed, made inactive or deleted. Returns the reason for people, on one line, without
 * an address; null: it may be sent.
 */
export async function unwantedBecause(
	sql: Sql,
	{ to_key, list_id, subscriber_id, is_active, disable_reason }: Addressee,
	type: 'TRANSACTIONAL' | 'BULK',
	reasonsAgainst: ReasonsAgainst,
): Promise<string | null> {
	const mail = { address: to_key, list_id };
	const reasons = await reasonsAgainst(mail);
	if (!isWanted(type, { reasons, is_active: null })) return await suppressedBecause(sql, mail, reasons, type);
	if (type !== 'BULK' || subscriber_id === null) return null;
	if (is_active === null) return 'not sent: the subscriber was deleted';
	if (is_active === 1) return null;
	const because = disable_reason === null ? '' : ` (${disable_reason})`;
	return `not sent: the subscriber is inactive${because}`;
}

/** The strongest reason that applies; without a row of its own the reason is an erasure. */
async function suppressedBecause(
	sql: Sql,
	mail: MailTo,
	reasons: readonly SuppressionReason[],
	type: 'TRANSACTIONAL' | 'BULK',
): Promise<string> {
	const reason = stopping(type, reasons);
	const since = await suppressedSince(sql, mail, reason);
	if (since === undefined) return 'not sent: the person behind the address was erased';
	return `not sent: the address is suppressed, ${reason} since ${formatDateTime(since).slice(0, 19)}Z`;
}
