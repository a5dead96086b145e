/** Stops mail to people. A lasting suppression also deactivates the subscribers with its address. */
import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { SuppressionReason, SuppressionSource } from '../../api/suppressions.js';
import type { ReturnedReport } from '../../engine/rules/outcomes.js';
import {
	type Addition,
	additionOf,
	hasEnded,
	isSoftBounceLimit,
	mayBeOfOneList,
} from '../../engine/rules/subscribers.js';
import { moveCounters } from './figures/tally.js';
import { type Change, each, exists, type Insertion, type Sql } from './sql.js';
import { allLists, isAbout, type MailTo } from './suppressions.js';

type WantedSuppression = MailTo & Omit<StoredSuppression, 'email_key' | 'list_id'>;

export type Stop = Omit<WantedSuppression, 'created_at' | 'expires_at'> & { now: Micros };

export interface StoredSuppression {
	email_key: EmailKey;
	reason: SuppressionReason;
	list_id: number;
	source: SuppressionSource;
	created_at: Micros;
	expires_at: Micros | null;
}

export const suppressionColumns = 'email_key, reason, list_id, source, created_at, expires_at';

interface SubscriberState {
	id: number;
	email_key: EmailKey;
	list_id: number;
	is_active: number;
	disable_reason: string | null;
	soft_bounces: number;
	soft_bounced_since: Micros | null;
}

interface Known {
	suppressions: StoredSuppression[];
	subscribers: SubscriberState[];
}

export class Recipients {
	readonly #sql: Sql;
	readonly #known: ReadonlyMap<EmailKey, Known>;
	readonly #written = new Set<StoredSuppression>();
	readonly #touched = new Set<SubscriberState>();
	readonly #stopped = new Map<number, number>();

	constructor(sql: Sql, known: ReadonlyMap<EmailKey, Known>) {
		this.#sql = sql;
		this.#known = known;
	}

	/** Deactivates subscribers even if the suppression is stored already: a user may have reactivated them since. */
	add(wanted: WantedSuppression, now: Micros): Addition {
		const { address, reason, list_id, source, created_at, expires_at } = wanted;
		const { suppressions, subscribers } = this.#of(address);
		const list = list_id ?? allLists;
		const stored = suppressions.find((row) => row.reason === reason && row.list_id === list);
		const addition = additionOf(stored ?? null, wanted, now);
		if (addition !== 'unchanged') {
			const fresh = { email_key: address, reason, list_id: list, source, created_at, expires_at };
			const row = stored ?? fresh;
			if (stored === undefined) suppressions.push(row);
			else if (addition === 'created') Object.assign(stored, fresh);
			row.expires_at = expires_at;
			this.#written.add(row);
		}
		if (expires_at === null)
			for (const one of subscribers)
				if (list_id === null || one.list_id === list_id) this.#deactivate(one, reason);
		return addition;
	}

	stop({ now, ...stop }: Stop): void {
		this.add({ ...stop, created_at: now, expires_at: null }, now);
	}

	softBounce(address: EmailKey, at: Micros): void {
		const own = this.#of(address).subscribers;
		for (const one of own) {
			if (one.is_active !== 1) continue;
			one.soft_bounces += 1;
			one.soft_bounced_since ??= at;
			this.#touched.add(one);
		}
		const isOver = own.some(
			({ soft_bounces: count, soft_bounced_since: since }) =>
				count > 0 && isSoftBounceLimit({ count, since: since ?? at }, at),
		);
		if (isOver) this.stop({ address, list_id: null, reason: 'SOFTBOUNCED', source: 'DELIVERY', now: at });
	}

	listsOf(address: EmailKey): number[] {
		return this.#of(address).subscribers.map(({ list_id }) => list_id);
	}

	write(): void {
		const sql = this.#sql;
		sql.writeAll(
			intoSuppressions,
			[...this.#written].map(({ email_key, reason, list_id, source, created_at, expires_at }) => [
				...[email_key, reason, list_id, source, created_at, expires_at],
			]),
		);
		sql.writeEach(
			changeState,
			[...this.#touched].map(({ id, is_active, disable_reason, soft_bounces, soft_bounced_since }) => [
				...[is_active, disable_reason, soft_bounces, soft_bounced_since, id],
			]),
		);
		for (const [list, count] of [...this.#stopped].sort(([one], [other]) => one - other))
			moveCounters(sql, list, { active: -count, inactive: count }, null);
		this.#written.clear();
		this.#touched.clear();
		this.#stopped.clear();
	}

	#deactivate(one: SubscriberState, reason: SuppressionReason): void {
		const { is_active } = one;
		const disable_reason = is_active === 1 ? reason : (one.disable_reason ?? reason);
		if (is_active === 1) this.#stopped.set(one.list_id, (this.#stopped.get(one.list_id) ?? 0) + 1);
		else if (one.disable_reason === disable_reason && one.soft_bounces === 0) return;
		Object.assign(one, { is_active: 0, disable_reason, soft_bounces: 0, soft_bounced_since: null });
		this.#touched.add(one);
	}

	#of(address: EmailKey): Known {
		const found = this.#known.get(address);
		if (found === undefined) throw new Error('an address that was not read');
		return found;
	}
}

const asked = { address: 'TEXT' } as const;

export async function readRecipients(sql: Sql, addresses: readonly EmailKey[]): Promise<Recipients> {
	const known = new Map<EmailKey, Known>();
	for (const address of addresses) known.set(address, { suppressions: [], subscribers: [] });
	const sets = [...known.keys()].map((address): [EmailKey] => [address]);
	const [suppressions, subscribers] = await sql.together([
		() =>
			sql.allOf<StoredSuppression>(
				`SELECT ${suppressionColumns} FROM suppressions WHERE email_key = ?`,
				asked,
				sets,
			),
		() =>
			sql.allOf<SubscriberState>(
				`SELECT id, email_key, list_id, is_active, disable_reason, soft_bounces, soft_bounced_since
				FROM subscribers
				WHERE email_key = ?
				ORDER BY list_id`,
				asked,
				sets,
			),
	]);
	for (const row of suppressions) known.get(row.email_key)?.suppressions.push(row);
	for (const row of subscribers) known.get(row.email_key)?.subscribers.push(row);
	return new Recipients(sql, known);
}

export async function stopMail(sql: Sql, stop: Stop): Promise<void> {
	const recipients = await readRecipients(sql, [stop.address]);
	recipients.stop(stop);
	recipients.write();
}

const intoSuppressions: Insertion = {
	table: 'suppressions',
	columns: {
		...{ email_key: 'TEXT', reason: 'TEXT', list_id: 'BIGINT', source: 'TEXT' },
		...{ created_at: 'BIGINT', expires_at: 'BIGINT' },
	},
	conflict: `ON CONFLICT (email_key, reason, list_id) DO UPDATE
		SET source = excluded.source, created_at = excluded.created_at, expires_at = excluded.expires_at`,
};

const changeState: Change = {
	update: `UPDATE subscribers
		SET is_active = ?, disable_reason = ?, soft_bounces = ?, soft_bounced_since = ?`,
	where: 'id = ?',
	columns: { active: 'BIGINT', why: 'TEXT', bounces: 'BIGINT', since: 'BIGINT', subscriber: 'BIGINT' },
};

/** Allows mail of `list_id` again. If the address unsubscribed from all lists, it gets mail of no other list. */
export async function liftSuppressions(
	sql: Sql,
	{ address, list_id }: { address: EmailKey; list_id: number },
	{ reasons, now }: { reasons: readonly SuppressionReason[]; now: Micros },
): Promise<void> {
	if (reasons.length === 0) return;
	const lifted = await each(sql, reasons, (reason) =>
		sql.all<StoredSuppression>(
			`DELETE FROM suppressions
			WHERE email_key = ? AND reason = ? AND list_id IN (${allLists}, ?)
			RETURNING ${suppressionColumns}`,
			[address, reason, list_id],
		),
	);
	const kept = lifted
		.flat()
		.filter((one) => one.list_id === allLists && mayBeOfOneList(one.reason) && !hasEnded(one, now));
	if (kept.length === 0) return;
	const recipients = await readRecipients(sql, [address]);
	for (const stored of kept)
		for (const other of recipients.listsOf(address))
			if (other !== list_id) recipients.add({ ...stored, address, list_id: other }, now);
	recipients.write();
}

export async function carryUnsubscription(
	sql: Sql,
	{ from, to: address, list_id }: { from: EmailKey; to: EmailKey; list_id: number },
	now: Micros,
): Promise<void> {
	const stored = await sql.get<StoredSuppression>(
		`SELECT ${suppressionColumns}
		FROM suppressions
		WHERE ${isAbout} AND reason = 'UNSUBSCRIBED' AND expires_at IS NULL
		ORDER BY created_at, list_id`,
		[from, list_id],
	);
	if (stored === undefined) return;
	const recipients = await readRecipients(sql, [address]);
	recipients.add({ ...stored, address, list_id }, now);
	recipients.write();
}

/** Makes suppressions of a deleted list apply to all lists, because a new list may contain the same addresses. */
export async function widenToAllLists(
	sql: Sql,
	{ list_id, now }: { list_id: number; now: Micros },
): Promise<void> {
	const ofList = await sql.all<StoredSuppression>(
		`DELETE FROM suppressions WHERE list_id = ? RETURNING ${suppressionColumns}`,
		[list_id],
	);
	const widened = ofList.filter((stored) => !hasEnded(stored, now));
	const addresses = widened.map(({ email_key }) => email_key);
	const recipients = await readRecipients(sql, addresses);
	for (const stored of widened) recipients.add({ ...stored, address: stored.email_key, list_id: null }, now);
	recipients.write();
}

/** Suppresses an address whose run of soft bounces reached the limit. A message without a bounce ends the run. */
export async function reportedSoftBounce(
	sql: Sql,
	{ id, to_key }: { id: number; to_key: EmailKey },
	{ sha256, at }: ReturnedReport,
): Promise<void> {
	const run = await sql.get<{ count: number; since: Micros | null }>(
		`SELECT count(*) AS count, min(f.first_at) AS since
		FROM messages m
		JOIN message_firsts f ON f.message_id = m.id AND f.type = 'SOFTBOUNCED'
		WHERE m.to_key = ? AND m.id <= ? AND m.id > (
			SELECT coalesce(max(b.id), 0)
			FROM messages b
			WHERE b.to_key = ? AND b.id < ? AND (b.state = 'sent' OR EXISTS (
				SELECT 1 FROM bounce_reports r WHERE r.message_id = b.id AND r.ends_run = 1
			))
		)`,
		[to_key, id, to_key, id],
	);
	if (run === undefined || !isSoftBounceLimit({ count: run.count, since: run.since ?? at }, at)) return;
	if (!(await exists(sql, 'SELECT 1 FROM subscribers WHERE email_key = ? AND is_active = 1', [to_key])))
		return;
	await stopMail(sql, { address: to_key, list_id: null, reason: 'SOFTBOUNCED', source: 'BOUNCE', now: at });
	sql.write('UPDATE bounce_reports SET ends_run = 1 WHERE sha256 = ?', [sha256]);
}
