/** Subscribers of a list: pages from counters where no filter asks for a scan, rules applied with the row at hand. */
import { emailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { SubscriberFilter } from '../../api/records.js';
import { erasedComplaint } from '../../engine/rules/erasure.js';
import { duplicateAddress } from '../../engine/rules/errors.js';
import { foldCase, foldedColumn } from '../../engine/rules/folding.js';
import { changeMeta, checkMeta } from '../../engine/rules/meta.js';
import { changeActivation, startActivation } from '../../engine/rules/subscription.js';
import type { PageOf, Slice, SubscriberPatch } from '../store.js';
import { isErased } from './erased.js';
import { knownVariables } from './fields.js';
import { type CountSubscribers, createFilteredCounts } from './filtered-counts.js';
import { counterMove, findList, moveCounters } from './lists.js';
import {
	flag,
	parseRecord,
	type SubscriberRow,
	type SubscriberTuple,
	shownColumns,
	span,
	subscriberColumns,
	toSubscriber,
	tupleToSubscriber,
} from './rows.js';
import type { Sql, SqlValue } from './sql.js';
import { findLasting, findSuppressions, liftSuppressions } from './suppressions.js';
import type { Operations } from './sync.js';
import { cancelWaitingOfSubscriber } from './waiting.js';

type SubscriberOperations = Pick<
	Operations,
	| 'pageSubscribers'
	| 'getSubscriber'
	| 'sliceSubscribers'
	| 'createSubscriber'
	| 'patchSubscriber'
	| 'deleteSubscriber'
>;

/**
 * One for a connection: counts of filters are kept until something is written. Each in one transaction of the caller.
 */
export function createSubscribers(sql: Sql): SubscriberOperations {
	const count = createFilteredCounts(sql);
	return {
		pageSubscribers: (command) => pageSubscribers(sql, count, command),
		getSubscriber: ({ list_id, id }) => {
			const row = findSubscriber(sql, list_id, id);
			return row === null ? null : toSubscriber(row);
		},
		sliceSubscribers: (command) => sliceSubscribers(sql, command),
		createSubscriber: (command) => createSubscriber(sql, command),
		patchSubscriber: (command) => patchSubscriber(sql, command),
		deleteSubscriber: ({ list_id, id }) => {
			const row = findSubscriber(sql, list_id, id);
			if (row === null) return false;
			cancelWaitingOfSubscriber(sql, row);
			sql.run('DELETE FROM subscribers WHERE id = ?', id);
			moveCounters(sql, list_id, counterMove(row.is_active === 1, null));
			return true;
		},
	};
}

/** Null where it is in another list, too. */
export function findSubscriber(sql: Sql, list_id: number, id: number): SubscriberRow | null {
	const row = sql.get<SubscriberRow>(
		`SELECT ${subscriberColumns} FROM subscribers WHERE id = ? AND list_id = ?`,
		id,
		list_id,
	);
	return row ?? null;
}

/** Takes `count` ids that were never used; the first of them. */
export function takeSubscriberIds(sql: Sql, count: number): number {
	const last = sql.number(
		"UPDATE id_sequences SET last = last + ? WHERE name = 'subscribers' RETURNING last",
		count,
	);
	return last - count + 1;
}

export interface NewSubscriber {
	id: number;
	list_id: number;
	email: string;
	email_key: string;
	/** See `foldedColumn`. */
	email_folded: string | null;
	name: string;
	is_active: boolean;
	disable_reason: string | null;
	meta: string;
	source: 'API' | 'IMPORT';
	created_at: Micros;
	import_seq: number | null;
}

/** False when the list has the address already; then nothing changes. Counters are the caller's. */
export function insertSubscriber(sql: Sql, row: NewSubscriber): boolean {
	const { changes } = sql.run(
		`INSERT INTO subscribers
			(id, list_id, email, email_key, email_folded, name, is_active, disable_reason, meta, source, created_at, import_seq)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (email_key, list_id) DO NOTHING`,
		row.id,
		row.list_id,
		row.email,
		row.email_key,
		row.email_folded,
		row.name,
		flag(row.is_active),
		row.disable_reason,
		row.meta,
		row.source,
		row.created_at,
		row.import_seq,
	);
	return changes === 1;
}

function pageSubscribers(
	sql: Sql,
	countRows: CountSubscribers,
	{ list_id, filter, ...page }: PageOf & { list_id: number; filter: SubscriberFilter },
): Slice<ReturnType<typeof toSubscriber>> | null {
	const list = findList(sql, list_id);
	if (list === null) return null;
	const { where, values } = conditions(list_id, filter);
	const isCounted = filter.email__icontains === undefined && filter.email__exact === undefined;
	const counted = countOf(list.active_count, list.inactive_count, filter.is_active);
	return {
		count: isCounted ? counted : countRows(where, values),
		results: sql
			.tuples<SubscriberTuple>(
				`SELECT ${shownColumns} FROM subscribers WHERE ${where} ORDER BY id LIMIT ? OFFSET ?`,
				...values,
				...span(page),
			)
			.map(tupleToSubscriber),
	};
}

function sliceSubscribers(
	sql: Sql,
	{ list_id, after, limit, filter }: Parameters<Operations['sliceSubscribers']>[0],
): ReturnType<Operations['sliceSubscribers']> {
	if (findList(sql, list_id) === null) return null;
	const { where, values } = conditions(list_id, filter);
	return (
		sql
			// subscribers_of_list (list_id, rowid)
			.tuples<SubscriberTuple>(
				`SELECT ${shownColumns} FROM subscribers WHERE ${where} AND id > ? ORDER BY id LIMIT ?`,
				...values,
				after,
				limit,
			)
			.map(tupleToSubscriber)
	);
}

function countOf(active: number, inactive: number, isActive: boolean | undefined): number {
	if (isActive === undefined) return active + inactive;
	return isActive ? active : inactive;
}

function conditions(list_id: number, filter: SubscriberFilter): { where: string; values: SqlValue[] } {
	const parts = ['list_id = ?'];
	const values: SqlValue[] = [list_id];
	if (filter.is_active !== undefined) {
		parts.push('is_active = ?');
		values.push(flag(filter.is_active));
	}
	if (filter.email__exact !== undefined) {
		parts.push('email_key = ?');
		values.push(emailKey(filter.email__exact));
	}
	if (filter.email__icontains !== undefined) {
		// instr, not LIKE: % and _ are literal, and LIKE folds ASCII only.
		parts.push('instr(coalesce(email_folded, email_key), ?) > 0');
		values.push(foldCase(filter.email__icontains));
	}
	return { where: parts.join(' AND '), values };
}

function createSubscriber(
	sql: Sql,
	{ list_id, input, now }: Parameters<Operations['createSubscriber']>[0],
): ReturnType<Operations['createSubscriber']> {
	if (findList(sql, list_id) === null) return { kind: 'not_found' };
	const meta = input.meta ?? {};
	const email_key = emailKey(input.email);
	const complaints = {
		...checkMeta(meta, knownVariables(sql)),
		...(hasAddress(sql, list_id, email_key) && duplicateAddress),
		...(isErased(sql, email_key) && erasedComplaint),
	};
	if (Object.keys(complaints).length > 0) return { kind: 'refused', errors: complaints };
	const start = startActivation(input.is_active ?? true, findLasting(sql, email_key));
	const id = takeSubscriberIds(sql, 1);
	insertSubscriber(sql, {
		...start,
		id,
		list_id,
		email: input.email,
		email_key,
		email_folded: foldedColumn(input.email, email_key),
		name: input.name ?? '',
		meta: JSON.stringify(meta),
		source: 'API',
		created_at: now,
		import_seq: null,
	});
	moveCounters(sql, list_id, counterMove(null, start.is_active));
	return written(sql, list_id, id);
}

function patchSubscriber(
	sql: Sql,
	{ list_id, id, patch, now }: Parameters<Operations['patchSubscriber']>[0],
): ReturnType<Operations['patchSubscriber']> {
	const row = findSubscriber(sql, list_id, id);
	if (row === null) return { kind: 'not_found' };
	const email_key = patch.email === undefined ? row.email_key : emailKey(patch.email);
	const isMoved = email_key !== row.email_key;
	const change = changeActivation({
		stored: { is_active: row.is_active === 1, disable_reason: row.disable_reason },
		wanted: patch.is_active,
		isMoved,
		reasons: findSuppressions(sql, email_key, now),
		lasting: findLasting(sql, email_key),
	});
	const meta = patchedMeta(sql, row, patch);
	const complaints = {
		...(meta.kind === 'refused' && meta.errors),
		...(isMoved && hasAddress(sql, list_id, email_key) && duplicateAddress),
		...(isMoved && isErased(sql, email_key) && erasedComplaint),
		...(change.kind === 'refused' && change.errors),
	};
	if (meta.kind === 'refused' || change.kind === 'refused' || Object.keys(complaints).length > 0) {
		return { kind: 'refused', errors: complaints };
	}
	liftSuppressions(sql, email_key, change.lift);
	const email = patch.email ?? row.email;
	sql.run(
		`UPDATE subscribers
		SET email = ?, email_key = ?, email_folded = ?, name = ?, is_active = ?, disable_reason = ?, meta = ?,
			soft_bounces = CASE email_key WHEN ? THEN soft_bounces ELSE 0 END,
			soft_bounced_since = CASE email_key WHEN ? THEN soft_bounced_since END
		WHERE id = ?`,
		email,
		email_key,
		foldedColumn(email, email_key),
		patch.name ?? row.name,
		flag(change.activation.is_active),
		change.activation.disable_reason,
		meta.text,
		// What the address that was left did is not held against the new one.
		email_key,
		email_key,
		id,
	);
	moveCounters(sql, list_id, counterMove(row.is_active === 1, change.activation.is_active));
	return written(sql, list_id, id);
}

function patchedMeta(sql: Sql, row: SubscriberRow, patch: SubscriberPatch) {
	const isTouched = patch.meta ?? patch.merge_meta ?? patch.unset_meta;
	if (isTouched === undefined) return { kind: 'kept', text: row.meta } as const;
	const meta = changeMeta(parseRecord(row.meta), patch);
	const errors = checkMeta(meta, knownVariables(sql));
	return errors === null
		? ({ kind: 'changed', text: JSON.stringify(meta) } as const)
		: ({ kind: 'refused', errors } as const);
}

function hasAddress(sql: Sql, list_id: number, email_key: string): boolean {
	const found = 'SELECT EXISTS (SELECT 1 FROM subscribers WHERE email_key = ? AND list_id = ?)';
	return sql.number(found, email_key, list_id) === 1;
}

function written(sql: Sql, list_id: number, id: number) {
	const row = findSubscriber(sql, list_id, id);
	return row === null
		? ({ kind: 'not_found' } as const)
		: ({ kind: 'written', record: toSubscriber(row) } as const);
}
