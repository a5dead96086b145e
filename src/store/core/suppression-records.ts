import { type EmailKey, emailKey } from '../../api/address.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import { refusalTexts } from '../../api/refusals.js';
import type {
	NewSuppression,
	Suppression,
	SuppressionAck,
	SuppressionFilter,
	SuppressionReason,
} from '../../api/suppressions.js';
import { foldCase } from '../../engine/rules/case-folding.js';
import { refusalOf } from '../../engine/rules/subscription.js';
import type { Command, Operations } from '../operations.js';
import { openErased } from './erasures.js';
import { hasList } from './lists.js';
import { type Recipients, readRecipients, type WantedSuppression } from './recipients.js';
import { selectPage } from './rows.js';
import { each, type Sql, type SqlValue } from './sql.js';
import { allLists } from './suppressions.js';

export function createSuppressions(sql: Sql) {
	return {
		pageSuppressions: ({ filter, now, ...page }) => {
			const order = 'email_key, reason, list_id';
			const paged = { columns, from: 'suppressions', ...conditions(sql, filter, now), order };
			return selectPage(sql, paged, page, toSuppression);
		},
		sliceSuppressions: async ({ after, limit, filter, now }) => {
			const { where, values } = conditions(sql, filter, now);
			// The primary key (email_key, reason, list_id).
			const behind = `(email_key, reason, list_id) > (?, ?, ?) AND ${where}
				ORDER BY email_key, reason, list_id LIMIT ?`;
			const { email_key, reason, list_id } = after ?? { email_key: '', reason: '', list_id: null };
			return await selectSuppressions(sql, behind, [
				email_key,
				reason,
				list_id ?? allLists,
				...values,
				limit,
			]);
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
		removeSuppressions: (command) => remove(sql, command),
	} satisfies Partial<Operations>;
}

const columns = 'email_key, reason, list_id, source, created_at, expires_at';

interface SuppressionTableRow {
	email_key: EmailKey;
	reason: SuppressionReason;
	list_id: number;
	source: string;
	created_at: Micros;
	expires_at: Micros | null;
}

export async function selectSuppressions(
	sql: Sql,
	rest: string,
	values: readonly SqlValue[],
): Promise<Suppression[]> {
	return (
		await sql.all<SuppressionTableRow>(`SELECT ${columns} FROM suppressions WHERE ${rest}`, values)
	).map(toSuppression);
}

function toSuppression(row: SuppressionTableRow): Suppression {
	return {
		email: row.email_key,
		reason: row.reason,
		list_id: row.list_id === allLists ? null : row.list_id,
		source: row.source,
		date_created: formatDateTime(row.created_at),
		expires_at: row.expires_at === null ? null : formatDateTime(row.expires_at),
	};
}

function conditions(sql: Sql, filter: SuppressionFilter, now: Micros): { where: string; values: SqlValue[] } {
	const { email__exact: exact, email__icontains: part, reason, source, list_id } = filter;
	const given: [condition: string, value: SqlValue | undefined][] = [
		['(expires_at IS NULL OR expires_at > ?)', now],
		['email_key = ?', exact === undefined ? undefined : emailKey(exact)],
		// Not LIKE: % and _ are literal.
		[`${sql.dialect.position}(email_key, ?) > 0`, part === undefined ? undefined : foldCase(part)],
		['reason = ?', reason],
		['source = ?', source],
		['list_id = ?', list_id],
	];
	const used = given.flatMap(([condition, value]) => (value === undefined ? [] : [{ condition, value }]));
	return {
		where: used.map(({ condition }) => condition).join(' AND '),
		values: used.map(({ value }) => value),
	};
}

/** Handles one row after the other: a later one sees the effect of an earlier one. */
async function addEach(
	sql: Sql,
	{ rows, now }: Command<'putSuppressions'>,
): Promise<{ ack: SuppressionAck; recipients: Recipients }> {
	const named = [...new Set(rows.map(({ list_id }) => list_id))].filter((list) => list !== null);
	const [isErasedOf, missing, recipients] = await sql.together([
		() => openErased(sql),
		() => missingLists(sql, named),
		() =>
			readRecipients(
				sql,
				rows.map(({ email_key }) => email_key),
			),
	]);
	const isErased = isErasedOf === null ? [] : await each(sql, rows, ({ email_key }) => isErasedOf(email_key));
	const counts = { created: 0, updated: 0, unchanged: 0, rejected: 0 };
	const rejects: SuppressionAck['rejects'][number][] = [];
	for (const [index, row] of rows.entries()) {
		// The list would hold the address of an erased person.
		const refused = isErased[index] === true ? erased : (refusalOf(row, now) ?? refusedList(missing, row));
		if (refused === null) counts[recipients.add(wantedOf(row, now), now)] += 1;
		else {
			counts.rejected += 1;
			rejects.push({ row: index, code: refused.code, error: refused.error });
		}
	}
	return { ack: { counts, rejects }, recipients };
}

function wantedOf(
	{ email_key: address, list_id, reason, source, created_at, expires_at }: NewSuppression,
	now: Micros,
): WantedSuppression {
	return { address, list_id, reason, source, created_at: created_at ?? now, expires_at };
}

const erased = { code: 'erased', error: `email: ${refusalTexts.erased}` };

async function missingLists(sql: Sql, lists: readonly number[]): Promise<Set<number>> {
	const found = await each(sql, lists, (list) => hasList(sql, list));
	return new Set(lists.filter((_, at) => found[at] === false));
}

/** Rejects a list that does not exist: suppressions of a deleted list apply to all lists. */
function refusedList(
	missing: ReadonlySet<number>,
	{ list_id }: NewSuppression,
): { code: string; error: string } | null {
	if (list_id === null || !missing.has(list_id)) return null;
	return { code: 'does_not_exist', error: `list_id: There is no list ${list_id}.` };
}

async function remove(
	sql: Sql,
	{ email_key, reason, list_id, now }: Command<'removeSuppressions'>,
): ReturnType<Operations['removeSuppressions']> {
	const filter = {
		email__exact: email_key,
		...(reason !== null && { reason }),
		...(list_id !== null && { list_id }),
	};
	const { where, values } = conditions(sql, filter, now);
	const removed = await selectSuppressions(sql, `${where} ORDER BY reason, list_id`, values);
	if (removed.length === 0) return null;
	sql.write(`DELETE FROM suppressions WHERE ${where}`, values);
	const inactive_subscribers = await sql.number(
		'SELECT count(*) FROM subscribers WHERE email_key = ? AND is_active = 0 AND coalesce(?, list_id) = list_id',
		[email_key, list_id],
	);
	return { removed, inactive_subscribers };
}
