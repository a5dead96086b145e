import { emailKey } from '../../api/address.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { FieldErrors } from '../../api/errors.js';
import { type EncodedSubscribers, type TupleKeys, tupleKeys } from '../../api/exports.js';
import type { Subscriber, SubscriberFilter } from '../../api/records.js';
import {
	type Activation,
	changeActivation,
	changeMeta,
	checkMeta,
	duplicateAddress,
	erasedComplaint,
	foldCase,
	foldedColumn,
	notUnique,
	startActivation,
} from '../../engine/rules/subscribers.js';
import { damaged } from '../errors.js';
import type { Command, Operations } from '../operations.js';
import type { SubscriberPatch } from '../store.js';
import { isVariableTaken, knownVariables } from './fields.js';
import { counterMove, moveCounters } from './figures/tally.js';
import { findList, hasList } from './lists.js';
import { cancelWaitingOfSubscriber } from './messages/actions.js';
import { carryUnsubscription, liftSuppressions } from './recipients.js';
import {
	type Columns,
	type Conditions,
	conditionsOf,
	type Dialect,
	emailColumn,
	type Form,
	flag,
	type NumberedInsertion,
	parseRecord,
	type Sql,
	type SqlValue,
	type SubscriberRow,
	span,
	subscriberColumns,
	writtenOf,
} from './sql.js';
import { findLasting, findSuppressions, isErased } from './suppressions.js';
import { isNameTaken } from './templates.js';

export function createSubscribers(sql: Sql) {
	const count = createFilteredCounts(sql);
	let encoder: ReadRecords<EncodedSubscribers> | null = null;
	const encodeRecords = () => (encoder ??= recordEncoder(sql.dialect));
	return {
		pageSubscribers: (command) => readPage(sql, count, command, readSubscribers),
		encodeSubscriberPage: (command) => readPage(sql, count, command, encodeRecords()),
		getSubscriber: ({ list_id, id }) => getSubscriber(sql, list_id, id),
		sliceSubscribers: (command) => readSlice(sql, command, readSubscribers),
		encodeSubscriberSlice: (command) => readSlice(sql, command, encodeRecords()),
		encodeSubscriberTuples: (command) => readSlice(sql, command, tupleEncoder(sql.dialect, command)),
		createSubscriber: async ({ list_id, input, if_exists, now }) => {
			const meta = input.meta ?? {};
			const email_key = emailKey(input.email);
			const [isKnown, there, known, erased, lasting] = await sql.together([
				() => hasList(sql, list_id),
				() => findByAddress(sql, list_id, email_key),
				() => knownVariables(sql),
				() => isErased(sql, email_key),
				() => findLasting(sql, { address: email_key, list_id }),
			]);
			if (!isKnown) return { kind: 'not_found' };
			if (there !== null && if_exists !== undefined) {
				if (if_exists === 'skip') return writtenOf(await getSubscriber(sql, list_id, there));
				const { email: _, meta: merge_meta, ...given } = input;
				const patch = { ...given, ...(merge_meta !== undefined && { merge_meta: { ...merge_meta } }) };
				return await patchSubscriber(sql, { list_id, id: there, patch, now });
			}
			const errors = {
				...checkMeta(meta, known),
				...(there !== null && duplicateAddress),
				...(erased && erasedComplaint),
			};
			if (Object.keys(errors).length > 0) return { kind: 'refused', errors };
			const { is_active, disable_reason } = startActivation(input.is_active ?? true, lasting);
			const row: NewSubscriber = {
				is_active,
				disable_reason,
				list_id,
				email: input.email,
				email_key,
				email_folded: foldedColumn(input.email, email_key),
				name: input.name ?? '',
				meta: JSON.stringify(meta),
				source: 'API',
				created_at: now,
				import_seq: null,
			};
			const { before, value } = sql.dialect.newSubscriberId;
			if (before !== null) sql.write(before);
			moveCounters(sql, list_id, counterMove(null, is_active), now);
			const id = await sql.insert(
				'id',
				`INSERT INTO subscribers (id, ${newNames}) VALUES (${value}, ${newPlaces})`,
				newValues(row),
			);
			if (id === null) throw new Error('a subscriber without an id');
			const stored = { id, is_active: flag(is_active), is_email_verified: 0, opt_in_signed: null };
			return { kind: 'written', record: toSubscriber(Object.assign({}, row, stored)) };
		},
		patchSubscriber: (command) => patchSubscriber(sql, command),
		deleteSubscriber: async ({ list_id, id }) => {
			const row = await findSubscriber(sql, list_id, id);
			if (row === null) return false;
			cancelWaitingOfSubscriber(sql, row);
			sql.write('DELETE FROM subscribers WHERE id = ?', [id]);
			moveCounters(sql, list_id, counterMove(row.is_active === 1, null), row.created_at);
			return true;
		},
		fieldErrors: async (question) => {
			const { kind, id } = question;
			if (kind === 'subscriber') {
				const row = id === null ? null : await findSubscriber(sql, question.list_id, id);
				return (await judge(sql, row, question)).errors;
			}
			if (kind === 'field') {
				const { variable } = question;
				const isTaken = variable !== undefined && (await isVariableTaken(sql, variable, question.id ?? 0));
				return isTaken ? notUnique('variable') : {};
			}
			const { name } = question;
			const isTaken = name !== undefined && (await isNameTaken(sql, name, question.id ?? ''));
			return isTaken ? notUnique('name') : {};
		},
	} satisfies Partial<Operations>;
}

async function findSubscriber(sql: Sql, list_id: number, id: number): Promise<SubscriberRow | null> {
	const row = await sql.get<SubscriberRow>(
		`SELECT ${subscriberColumns} FROM subscribers WHERE id = ? AND list_id = ?`,
		[id, list_id],
	);
	return row ?? null;
}

interface NewSubscriber {
	list_id: number;
	email: string;
	email_key: string;
	email_folded: string | null;
	name: string;
	is_active: boolean;
	disable_reason: string | null;
	meta: string;
	source: 'API' | 'IMPORT';
	created_at: Micros;
	import_seq: number | null;
}

const newColumns = {
	...{ list_id: 'BIGINT', email: 'TEXT', email_key: 'TEXT', email_folded: 'TEXT', name: 'TEXT' },
	...{ is_active: 'BIGINT', disable_reason: 'TEXT', meta: 'TEXT', source: 'TEXT' },
	...{ created_at: 'BIGINT', import_seq: 'BIGINT' },
} as const satisfies Columns;

function newValues(row: NewSubscriber): SqlValue[] {
	return [
		row.list_id,
		storedEmail(row),
		row.email_key,
		row.email_folded,
		row.name,
		flag(row.is_active),
		row.disable_reason,
		row.meta,
		row.source,
		row.created_at,
		row.import_seq,
	];
}

function storedEmail({ email, email_key }: { email: string; email_key: string }): string {
	return email === email_key ? '' : email;
}

const intoSubscribers: NumberedInsertion = {
	table: 'subscribers',
	columns: { ...newColumns, id: 'BIGINT' },
	key: 'id',
	id: 'id',
	conflict: 'ON CONFLICT (email_key, list_id) DO NOTHING',
};
const intoNewSubscribers: NumberedInsertion = { ...intoSubscribers, conflict: '' };

/** Returns false for rows whose address is already in the list. With `areNew`, a known address is an error instead. */
export async function insertSubscribers(
	sql: Sql,
	rows: readonly (NewSubscriber & { id: number })[],
	areNew = false,
): Promise<boolean[]> {
	const made = await sql.insertAll(
		areNew ? intoNewSubscribers : intoSubscribers,
		rows.map((row) => {
			const values = newValues(row);
			values.push(row.id);
			return values;
		}),
	);
	return made.map((id) => id !== null);
}

const newNames = Object.keys(newColumns).join(', ');
const newPlaces = Object.keys(newColumns)
	.map(() => '?')
	.join(', ');

type CountSubscribers = (where: string, values: readonly SqlValue[]) => Promise<number>;

const mostCounts = 200;

/** Caches counts until data changes, because pages of one search ask for the same count. */
export function createFilteredCounts(sql: Sql): CountSubscribers {
	const counts = new Map<string, number>();
	let seen = '';
	return async (where, values) => {
		const [[state] = ['']] = await sql.tuples<[string]>(sql.dialect.seenState);
		if (state !== seen || counts.size >= mostCounts) counts.clear();
		seen = state;
		const key = JSON.stringify([where, values]);
		const known = counts.get(key);
		if (known !== undefined) return known;
		const count = await sql.number(`SELECT count(*) FROM subscribers WHERE ${where}`, values);
		counts.set(key, count);
		return count;
	};
}

type ReadRecords<Records> = (sql: Sql, query: string, values: readonly SqlValue[]) => Promise<Records>;

async function readPage<Records>(
	sql: Sql,
	countRows: CountSubscribers,
	{ list_id, filter, ...page }: Command<'pageSubscribers'>,
	read: ReadRecords<Records>,
): Promise<{ count: number; results: Records } | null> {
	const { where, values } = conditions(sql, list_id, filter);
	const isCounted = filter.email__icontains === undefined && filter.email__exact === undefined;
	const query = `SELECT ${shownColumns} FROM subscribers WHERE ${where} ORDER BY id LIMIT ? OFFSET ?`;
	const [list, found, results] = await sql.together([
		() => findList(sql, list_id),
		async () => (isCounted ? 0 : await countRows(where, values)),
		() => read(sql, query, [...values, ...span(page)]),
	]);
	if (list === null) return null;
	const { is_active } = filter;
	const active = is_active === false ? 0 : list.active_count;
	const inactive = is_active === true ? 0 : list.inactive_count;
	return { count: isCounted ? active + inactive : found, results };
}

async function readSlice<Records>(
	sql: Sql,
	{ list_id, after, limit, filter }: Command<'sliceSubscribers'>,
	read: ReadRecords<Records>,
): Promise<Records | null> {
	const { where, values } = conditions(sql, list_id, filter);
	const query = `SELECT ${shownColumns} FROM subscribers WHERE ${where} AND id > ? ORDER BY id LIMIT ?`;
	const [isKnown, records] = await sql.together([
		() => hasList(sql, list_id),
		() => read(sql, query, [...values, after, limit]),
	]);
	return isKnown ? records : null;
}

function conditions(
	{ dialect: { position } }: Sql,
	list_id: number,
	{ is_active, email__exact: exact, email__icontains: part }: SubscriberFilter,
): Conditions {
	return conditionsOf([
		['list_id = ?', list_id],
		['is_active = ?', is_active === undefined ? undefined : flag(is_active)],
		['email_key = ?', exact === undefined ? undefined : emailKey(exact)],
		// LIKE would treat % and _ as wildcards, and folds only ASCII.
		[
			`${position}(coalesce(email_folded, email_key), ?) > 0`,
			part === undefined ? undefined : foldCase(part),
		],
	]);
}

async function judge(
	sql: Sql,
	row: SubscriberRow | null,
	{ list_id, patch, now }: { list_id: number; patch: SubscriberPatch; now: Micros },
) {
	const email_key = patch.email === undefined ? (row?.email_key ?? null) : emailKey(patch.email);
	const isMoved = email_key !== null && email_key !== row?.email_key;
	const mailTo = { address: email_key ?? '', list_id };
	const isMetaKept = (patch.meta ?? patch.merge_meta ?? patch.unset_meta) === undefined;
	const [reasons, lasting, known, isTaken, erased] = await sql.together([
		() => findSuppressions(sql, mailTo, now),
		() => findLasting(sql, mailTo),
		async () => (isMetaKept ? null : await knownVariables(sql)),
		async () => isMoved && (await findByAddress(sql, list_id, email_key)) !== null,
		async () => isMoved && (await isErased(sql, email_key)),
	]);
	const meta = isMetaKept ? null : changeMeta(row === null ? {} : parseRecord(row.meta), patch);
	const stored: Activation = { is_active: row?.is_active === 1, disable_reason: row?.disable_reason ?? null };
	const change = changeActivation({ stored, wanted: patch.is_active, isMoved, reasons, lasting });
	const errors: FieldErrors = {
		...(meta !== null && known !== null && checkMeta(meta, known)),
		...(isTaken && duplicateAddress),
		...(erased && erasedComplaint),
		...(row !== null && change.kind === 'refused' && change.errors),
	};
	return { errors, meta, change, isMoved };
}

async function patchSubscriber(
	sql: Sql,
	command: Command<'patchSubscriber'>,
): ReturnType<Operations['patchSubscriber']> {
	const { list_id, id, patch, now } = command;
	const row = await findSubscriber(sql, list_id, id);
	if (row === null) return { kind: 'not_found' };
	const { errors, meta: changed, change, isMoved } = await judge(sql, row, command);
	if (change.kind === 'refused' || Object.keys(errors).length > 0) return { kind: 'refused', errors };
	const email = patch.email ?? row.email;
	const email_key = isMoved ? emailKey(email) : row.email_key;
	await liftSuppressions(sql, { address: email_key, list_id }, { reasons: change.lift, now });
	const name = patch.name ?? row.name;
	const meta = changed === null ? row.meta : JSON.stringify(changed);
	const { disable_reason } = change.activation;
	const is_active = flag(change.activation.is_active);
	// Bounces of the old address do not count against the new one.
	sql.write(
		`UPDATE subscribers
		SET email = ?, email_key = ?, email_folded = ?, name = ?, is_active = ?, disable_reason = ?, meta = ?,
			soft_bounces = CASE email_key WHEN ? THEN soft_bounces ELSE 0 END,
			soft_bounced_since = CASE email_key WHEN ? THEN soft_bounced_since END
		WHERE id = ?`,
		[
			...[storedEmail({ email, email_key }), email_key, foldedColumn(email, email_key), name],
			...[is_active, disable_reason, meta, email_key, email_key, id],
		],
	);
	moveCounters(sql, list_id, counterMove(row.is_active === 1, is_active === 1), null);
	if (isMoved && patch.is_active !== true) {
		await carryUnsubscription(sql, { from: row.email_key, to: email_key, list_id }, now);
		return writtenOf(await getSubscriber(sql, list_id, id));
	}
	const record = toSubscriber({ ...row, email, email_key, name, is_active, disable_reason, meta });
	return { kind: 'written', record };
}

async function findByAddress(sql: Sql, list_id: number, email_key: string): Promise<number | null> {
	const found = 'SELECT id FROM subscribers WHERE email_key = ? AND list_id = ?';
	return (await sql.get<{ id: number }>(found, [email_key, list_id]))?.id ?? null;
}

async function getSubscriber(sql: Sql, list_id: number, id: number): Promise<Subscriber | null> {
	const row = await findSubscriber(sql, list_id, id);
	return row === null ? null : toSubscriber(row);
}

/** The keys are in the API's order. Columns that are missing here are internal. */
const members: Readonly<Record<keyof Subscriber, readonly [column: keyof SubscriberRow, form: Form]>> = {
	id: ['id', 'number'],
	list_id: ['list_id', 'number'],
	email: ['email', 'text'],
	name: ['name', 'text'],
	is_active: ['is_active', 'flag'],
	disable_reason: ['disable_reason', 'text'],
	is_email_verified: ['is_email_verified', 'flag'],
	meta: ['meta', 'json'],
	source: ['source', 'text'],
	opt_in_signed: ['opt_in_signed', 'time'],
	date_created: ['created_at', 'time'],
};

const columns = Object.values(members).map(([column]) => column);

const shownColumns = columns.map((column) => (column === 'email' ? emailColumn : column)).join(', ');

type RowTuple = readonly [
	...[id: number, list_id: number, email: string, name: string, is_active: number],
	...[disable_reason: string | null, is_email_verified: number, meta: string, source: string],
	...[opt_in_signed: Micros | null, created_at: Micros],
];

async function readSubscribers(sql: Sql, query: string, values: readonly SqlValue[]): Promise<Subscriber[]> {
	return (await sql.tuples<RowTuple>(query, values)).map(recordOf);
}

export function toSubscriber(row: SubscriberRow): Subscriber {
	return recordOf(columns.map((column) => row[column]) as unknown as RowTuple);
}

/** Names each key, because a loop over `members` takes an eighth longer for a million records. */
function recordOf(tuple: RowTuple): Subscriber {
	const [id, list_id, email, name, is_active, disable_reason, is_email_verified, meta, source] = tuple;
	const opt_in_signed = tuple[9];
	return {
		id,
		list_id,
		email,
		name,
		is_active: is_active === 1,
		disable_reason,
		is_email_verified: is_email_verified === 1,
		meta: meta === '{}' ? {} : parseRecord(meta),
		source,
		opt_in_signed: opt_in_signed === null ? null : formatDateTime(opt_in_signed),
		date_created: formatDateTime(tuple[10]),
	};
}

function recordEncoder({ json }: Dialect): ReadRecords<EncodedSubscribers> {
	const keys = Object.entries(members);
	const form = `{${keys.map(([key]) => `"${key}":%s`).join(',')}}`;
	return encoderOf(
		form,
		keys.map(([, [column, form]]) => json[form](column)),
	);
}

function tupleEncoder(
	{ json }: Dialect,
	{ keys, isChecked = false }: { keys: TupleKeys; isChecked?: boolean },
) {
	const cells = tupleKeys[keys].map((key) => {
		const [column, form] = members[key];
		return key === 'meta' && isChecked ? 'meta' : json[form](column);
	});
	return encoderOf(`[${cells.map(() => '%s').join(',')}]`, cells);
}

function encoderOf(form: string, cells: readonly string[]): ReadRecords<EncodedSubscribers> {
	const select = `SELECT '[' || coalesce(string_agg(format('${form}', ${cells.join(', ')}), ','), '') || ']', count(*), max(id)`;
	return async (sql, query, values) => {
		try {
			const [row] = await sql.tuples<[json: string, length: number, last: number | null]>(
				`${select} FROM (${query}) AS people`,
				values,
			);
			const [json, length, last] = row ?? ['[]', 0, null];
			return { json, length, last };
		} catch (error) {
			throw error instanceof Error && isMalformed.test(error.message) ? damaged(error) : error;
		}
	};
}

const isMalformed = /malformed JSON|invalid input syntax for type json/;
