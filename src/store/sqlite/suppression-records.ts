/** Suppressions by name: looking at them, adding and removing them. What an event does to them is beside this file. */
import { type EmailKey, emailKey } from '../../api/address.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import type {
	Suppression,
	SuppressionAck,
	SuppressionFilter,
	SuppressionReason,
} from '../../api/suppressions.js';
import { erasedMessage } from '../../engine/rules/erasure.js';
import { foldCase } from '../../engine/rules/folding.js';
import { type Addition, additionOf, refusalOf } from '../../engine/rules/suppressions.js';
import { openErased } from './erased.js';
import { span } from './rows.js';
import type { Sql, SqlValue } from './sql.js';
import { addSuppression, compareSuppression, deactivate, type WantedSuppression } from './suppressions.js';
import type { Operations } from './sync.js';

type SuppressionOperations = Pick<
	Operations,
	| 'pageSuppressions'
	| 'sliceSuppressions'
	| 'compareSuppressions'
	| 'putSuppressions'
	| 'findSuppression'
	| 'removeSuppressions'
>;

/** What has expired by `now` is as if it were not there. Adding and removing need one transaction of the caller. */
export function createSuppressions(sql: Sql): SuppressionOperations {
	return {
		pageSuppressions: ({ filter, now, ...page }) => {
			const { where, values } = conditions(filter, now);
			return {
				count: sql.number(`SELECT count(*) FROM suppressions WHERE ${where}`, ...values),
				results: select(sql, `${where} ORDER BY email_key, reason LIMIT ? OFFSET ?`, [
					...values,
					...span(page),
				]),
			};
		},
		sliceSuppressions: ({ after, limit, filter, now }) => {
			const { where, values } = conditions(filter, now);
			// The primary key (email_key, reason).
			const behind = `(email_key, reason) > (?, ?) AND ${where} ORDER BY email_key, reason LIMIT ?`;
			return select(sql, behind, [after?.email_key ?? '', after?.reason ?? '', ...values, limit]);
		},
		findSuppression: ({ email_key, reason, now }) => {
			const { where, values } = conditions({ reason }, now);
			return select(sql, `email_key = ? AND ${where}`, [email_key, ...values])[0] ?? null;
		},
		compareSuppressions: (command) => each(sql, command, asIfAdded()),
		putSuppressions: (command) => each(sql, command, put),
		removeSuppressions: (command) => remove(sql, command),
	};
}

interface SuppressionTableRow {
	email_key: EmailKey;
	reason: SuppressionReason;
	source: string;
	created_at: Micros;
	expires_at: Micros | null;
}

function select(sql: Sql, rest: string, values: readonly SqlValue[]): Suppression[] {
	return sql
		.all<SuppressionTableRow>(
			`SELECT email_key, reason, source, created_at, expires_at FROM suppressions WHERE ${rest}`,
			...values,
		)
		.map(toSuppression);
}

// Sources were written in lower case once.
function toSuppression(row: SuppressionTableRow): Suppression {
	return {
		email: row.email_key,
		reason: row.reason,
		source: row.source.toUpperCase(),
		date_created: formatDateTime(row.created_at),
		expires_at: row.expires_at === null ? null : formatDateTime(row.expires_at),
	};
}

function conditions(filter: SuppressionFilter, now: Micros): { where: string; values: SqlValue[] } {
	const { email__exact: exact, email__icontains: part, reason, source } = filter;
	const given: [condition: string, value: SqlValue | undefined][] = [
		['(expires_at IS NULL OR expires_at > ?)', now],
		['email_key = ?', exact === undefined ? undefined : emailKey(exact)],
		// instr, not LIKE: % and _ are literal.
		['instr(email_key, ?) > 0', part === undefined ? undefined : foldCase(part)],
		['reason = ?', reason],
		['upper(source) = ?', source],
	];
	const used = given.flatMap(([condition, value]) => (value === undefined ? [] : [{ condition, value }]));
	return {
		where: used.map(({ condition }) => condition).join(' AND '),
		values: used.map(({ value }) => value),
	};
}

/** One row after the other: a later one meets what an earlier one did. */
function each(
	sql: Sql,
	{ rows, now }: Parameters<Operations['putSuppressions']>[0],
	add: (sql: Sql, wanted: WantedSuppression, now: Micros) => Addition,
): SuppressionAck {
	const isErased = openErased(sql);
	const counts = { created: 0, updated: 0, unchanged: 0, rejected: 0 };
	const rejects: SuppressionAck['rejects'][number][] = [];
	rows.forEach((row, index) => {
		const { email_key: address, created_at, ...rest } = row;
		// The list would hold the address of somebody of whom nothing is to be kept.
		const refused = isErased?.(address) ? erased : refusalOf(row, now);
		if (refused === null) counts[add(sql, { ...rest, address, created_at: created_at ?? now }, now)] += 1;
		else {
			counts.rejected += 1;
			rejects.push({ row: index, code: refused.code, error: refused.error });
		}
	});
	return { counts, rejects };
}

/** What adding would do, with the rows before it added: nothing is written, so they are kept in mind. */
function asIfAdded(): (sql: Sql, wanted: WantedSuppression, now: Micros) => Addition {
	const before = new Map<string, WantedSuppression>();
	return (sql, wanted, now) => {
		const key = `${wanted.reason} ${wanted.address}`;
		const known = before.get(key);
		const addition =
			known === undefined ? compareSuppression(sql, wanted, now) : additionOf(known, wanted, now);
		if (addition !== 'unchanged') before.set(key, wanted);
		return addition;
	};
}

const erased = { code: 'erased', error: `email: ${erasedMessage}` };

function put(sql: Sql, wanted: WantedSuppression, now: Micros): Addition {
	const addition = addSuppression(sql, wanted, now);
	const { address, reason, expires_at } = wanted;
	// What stands already too: a subscriber may have come back since, or been passed over only.
	if (expires_at === null) deactivate(sql, { address, list_id: null, subscriber_id: null }, reason);
	return addition;
}

function remove(
	sql: Sql,
	{ email_key, reason, now }: Parameters<Operations['removeSuppressions']>[0],
): ReturnType<Operations['removeSuppressions']> {
	const filter = { email__exact: email_key, ...(reason !== null && { reason }) };
	const { where, values } = conditions(filter, now);
	const removed = select(sql, `${where} ORDER BY reason`, values);
	if (removed.length === 0) return null;
	sql.run(`DELETE FROM suppressions WHERE ${where}`, ...values);
	const inactive_subscribers = sql.number(
		'SELECT count(*) FROM subscribers WHERE email_key = ? AND is_active = 0',
		email_key,
	);
	return { removed, inactive_subscribers };
}
