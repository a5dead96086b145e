/** Suppressions by name: reading, adding and removing them. `suppressions.ts` has the effects of events. */
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
import { foldCase } from '../../engine/rules/folding.js';
import { type Addition, additionOf, refusalOf } from '../../engine/rules/suppressions.js';
import type { Command, Operations } from '../operations.js';
import { openErased } from './erasures.js';
import { findList } from './lists.js';
import { span } from './rows.js';
import type { Sql, SqlValue } from './sql.js';
import { addSuppression, allLists, compareSuppression, type WantedSuppression } from './suppressions.js';

/**
 * A suppression that has expired by `now` is treated as absent. Adding and removing need one transaction of the caller.
 */
export function createSuppressions(sql: Sql) {
	return {
		pageSuppressions: async ({ filter, now, ...page }) => {
			const { where, values } = conditions(sql, filter, now);
			return {
				count: await sql.number(`SELECT count(*) FROM suppressions WHERE ${where}`, ...values),
				results: await selectSuppressions(
					sql,
					`${where} ORDER BY email_key, reason, list_id LIMIT ? OFFSET ?`,
					[...values, ...span(page)],
				),
			};
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
		compareSuppressions: (command) => each(sql, command, asIfAdded()),
		putSuppressions: (command) => each(sql, command, addSuppression),
		removeSuppressions: (command) => remove(sql, command),
	} satisfies Partial<Operations>;
}

interface SuppressionTableRow {
	email_key: EmailKey;
	reason: SuppressionReason;
	list_id: number;
	source: string;
	created_at: Micros;
	expires_at: Micros | null;
}

/** `rest`: conditions and order; what has expired is not left out. */
export async function selectSuppressions(
	sql: Sql,
	rest: string,
	values: readonly SqlValue[],
): Promise<Suppression[]> {
	return (
		await sql.all<SuppressionTableRow>(
			`SELECT email_key, reason, list_id, source, created_at, expires_at FROM suppressions WHERE ${rest}`,
			...values,
		)
	).map(toSuppression);
}

// Sources were once written in lower case.
function toSuppression(row: SuppressionTableRow): Suppression {
	return {
		email: row.email_key,
		reason: row.reason,
		list_id: row.list_id === allLists ? null : row.list_id,
		source: row.source.toUpperCase(),
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
		['upper(source) = ?', source],
		['list_id = ?', list_id],
	];
	const used = given.flatMap(([condition, value]) => (value === undefined ? [] : [{ condition, value }]));
	return {
		where: used.map(({ condition }) => condition).join(' AND '),
		values: used.map(({ value }) => value),
	};
}

/** Handles one row after the other: a later one sees the effect of an earlier one. */
async function each(
	sql: Sql,
	{ rows, now }: Command<'putSuppressions'>,
	add: (sql: Sql, wanted: WantedSuppression, now: Micros) => Promise<Addition>,
): Promise<SuppressionAck> {
	const isErased = await openErased(sql);
	const counts = { created: 0, updated: 0, unchanged: 0, rejected: 0 };
	const rejects: SuppressionAck['rejects'][number][] = [];
	for (const [index, row] of rows.entries()) {
		const { email_key: address, created_at, ...rest } = row;
		// The list would hold the address of an erased person.
		const refused = (await isErased?.(address))
			? erased
			: (refusalOf(row, now) ?? (await refusedList(sql, row)));
		if (refused === null)
			counts[await add(sql, { ...rest, address, created_at: created_at ?? now }, now)] += 1;
		else {
			counts.rejected += 1;
			rejects.push({ row: index, code: refused.code, error: refused.error });
		}
	}
	return { counts, rejects };
}

/** The effect of adding a row after the rows before it. Nothing is written, so the results are kept in memory. */
function asIfAdded(): (sql: Sql, wanted: WantedSuppression, now: Micros) => Promise<Addition> {
	const before = new Map<string, WantedSuppression>();
	return async (sql, wanted, now) => {
		const key = `${wanted.reason} ${wanted.list_id} ${wanted.address}`;
		const known = before.get(key);
		const addition =
			known === undefined ? await compareSuppression(sql, wanted, now) : additionOf(known, wanted, now);
		if (addition !== 'unchanged') before.set(key, wanted);
		return addition;
	};
}

const erased = { code: 'erased', error: `email: ${refusalTexts.erased}` };

/** Rejects a list that does not exist: suppressions of a deleted list apply to all lists. */
async function refusedList(
	sql: Sql,
	{ list_id }: NewSuppression,
): Promise<{ code: string; error: string } | null> {
	if (list_id === null || (await findList(sql, list_id)) !== null) return null;
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
	sql.write(`DELETE FROM suppressions WHERE ${where}`, ...values);
	const inactive_subscribers = await sql.number(
		'SELECT count(*) FROM subscribers WHERE email_key = ? AND is_active = 0 AND coalesce(?, list_id) = list_id',
		email_key,
		list_id,
	);
	return { removed, inactive_subscribers };
}
