import { type EmailKey, emailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import { refusalTexts } from '../../api/refusals.js';
import type { Suppression, SuppressionAck, SuppressionFilter } from '../../api/suppressions.js';
import { foldCase, refusalOf } from '../../engine/rules/subscribers.js';
import type { Command, Operations } from '../operations.js';
import { hasList } from './lists.js';
import { type Recipients, readRecipients, type StoredSuppression, suppressionColumns } from './recipients.js';
import { type Conditions, conditionsOf, each, type Sql, type SqlValue, selectPage, timeOf } from './sql.js';
import { allLists, openErased } from './suppressions.js';

const order = 'email_key, reason, list_id';

export function createSuppressions(sql: Sql) {
	return {
		pageSuppressions: ({ filter, now, ...page }) => {
			const paged = {
				columns: suppressionColumns,
				from: 'suppressions',
				...conditions(sql, filter, now),
				order,
			};
			return selectPage(sql, paged, page, toSuppression);
		},
		sliceSuppressions: async ({ after, limit, filter, now }) => {
			const { where, values } = conditions(sql, filter, now);
			const { email_key, reason, list_id } = after ?? { email_key: '', reason: '', list_id: null };
			const behind = `(${order}) > (?, ?, ?) AND ${where} ORDER BY ${order} LIMIT ?`;
			const place = [email_key, reason, list_id ?? allLists];
			return await selectSuppressions(sql, behind, [...place, ...values, limit]);
		},
		findSuppression: async ({ email_key, reason, list_id, now }) => {
			const { where, values } = conditions(sql, { reason, list_id: list_id ?? allLists }, now);
			return (await selectSuppressions(sql, `email_key = ? AND ${where}`, [email_key, ...values]))[0] ?? null;
		},
		compareSuppressions: async (command) => (await addEach(sql, command)).ack,
		putSuppressions: async (command) => {
			const { ack, recipients } = await addEach(sql, command);
			recipients.write();
			return ack;
		},
		removeSuppressions: async ({ email_key, reason, list_id, now }) => {
			const { where, values } = conditions(
				sql,
				{
					email__exact: email_key,
					...(reason !== null && { reason }),
					...(list_id !== null && { list_id }),
				},
				now,
			);
			const removed = await selectSuppressions(sql, `${where} ORDER BY reason, list_id`, values);
			if (removed.length === 0) return null;
			sql.write(`DELETE FROM suppressions WHERE ${where}`, values);
			const inactive_subscribers = await sql.number(
				'SELECT count(*) FROM subscribers WHERE email_key = ? AND is_active = 0 AND coalesce(?, list_id) = list_id',
				[email_key, list_id],
			);
			return { removed, inactive_subscribers };
		},
	} satisfies Partial<Operations>;
}

export async function selectSuppressions(
	sql: Sql,
	rest: string,
	values: readonly SqlValue[],
): Promise<Suppression[]> {
	const rows = await sql.all<StoredSuppression>(
		`SELECT ${suppressionColumns} FROM suppressions WHERE ${rest}`,
		values,
	);
	return rows.map(toSuppression);
}

function toSuppression(row: StoredSuppression): Suppression {
	return {
		email: row.email_key,
		reason: row.reason,
		list_id: row.list_id === allLists ? null : row.list_id,
		source: row.source,
		date_created: timeOf(row.created_at),
		expires_at: timeOf(row.expires_at),
	};
}

function conditions(
	{ dialect: { position } }: Sql,
	{ email__exact: exact, email__icontains: part, reason, source, list_id }: SuppressionFilter,
	now: Micros,
): Conditions {
	return conditionsOf([
		['(expires_at IS NULL OR expires_at > ?)', now],
		['email_key = ?', exact === undefined ? undefined : emailKey(exact)],
		// LIKE would treat % and _ as wildcards.
		[`${position}(email_key, ?) > 0`, part === undefined ? undefined : foldCase(part)],
		['reason = ?', reason],
		['source = ?', source],
		['list_id = ?', list_id],
	]);
}

async function addEach(
	sql: Sql,
	{ rows, now }: Command<'putSuppressions'>,
): Promise<{ ack: SuppressionAck; recipients: Recipients }> {
	const named = [...new Set(rows.map(({ list_id }) => list_id))].filter((list) => list !== null);
	const addresses: EmailKey[] = rows.map(({ email_key }) => email_key);
	const [isErasedOf, areThere, recipients] = await sql.together([
		() => openErased(sql),
		() => each(sql, named, (list) => hasList(sql, list)),
		() => readRecipients(sql, addresses),
	]);
	const isErased = isErasedOf === null ? [] : await each(sql, addresses, (address) => isErasedOf(address));
	const counts = { created: 0, updated: 0, unchanged: 0, rejected: 0 };
	const rejects: SuppressionAck['rejects'][number][] = [];
	for (const [row, { email_key: address, list_id, created_at, ...given }] of rows.entries()) {
		const isMissing = list_id !== null && areThere[named.indexOf(list_id)] === false;
		const missing = { code: 'does_not_exist', error: `list_id: There is no list ${list_id}.` };
		// A stored suppression would reveal the address of an erased person, so reject the row.
		const refused =
			isErased[row] === true
				? { code: 'erased', error: `email: ${refusalTexts.erased}` }
				: (refusalOf({ expires_at: given.expires_at }, now) ?? (isMissing ? missing : null));
		if (refused === null) {
			const wanted = { address, list_id, ...given, created_at: created_at ?? now };
			counts[recipients.add(wanted, now)] += 1;
		} else {
			counts.rejected += 1;
			rejects.push({ row, code: refused.code, error: refused.error });
		}
	}
	return { ack: { counts, rejects }, recipients };
}
