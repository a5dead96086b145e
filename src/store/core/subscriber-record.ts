/** The record of a subscriber, made of its row: as an object, as a tuple, and as JSON that the database writes. */
import { formatDateTime, type Micros } from '../../api/datetime.js';
import { type EncodedSubscribers, type TupleKeys, tupleKeys } from '../../api/exports.js';
import type { Subscriber } from '../../api/records.js';
import { damaged } from '../errors.js';
import { emailColumn, parseRecord, type SubscriberRow } from './rows.js';
import type { Dialect, Form, Sql, SqlValue } from './sql.js';

/** Every key in the order of the wire, with its column and the form there. The other columns are internal. */
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

/** The columns of a record, in the order of a tuple. */
export const shownColumns = columns.map((column) => (column === 'email' ? emailColumn : column)).join(', ');

type RowTuple = readonly [
	id: number,
	list_id: number,
	email: string,
	name: string,
	is_active: number,
	disable_reason: string | null,
	is_email_verified: number,
	meta: string,
	source: string,
	opt_in_signed: Micros | null,
	created_at: Micros,
];

/** Reads the records of a query for `shownColumns`. Throws when a stored meta is no object. */
export async function readSubscribers(
	sql: Sql,
	query: string,
	values: readonly SqlValue[],
): Promise<Subscriber[]> {
	return (await sql.tuples<RowTuple>(query, ...values)).map(recordOf);
}

/** The record of a whole row. Throws when the stored meta is no object. */
export function toSubscriber(row: SubscriberRow): Subscriber {
	// In the order of the table above.
	return recordOf(columns.map((column) => row[column]) as unknown as RowTuple);
}

/** Written out: by the table above, reading and making a million records takes an eighth more. */
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

/** As `readSubscribers`, as their JSON. Throws when a stored meta is no JSON. */
export function encodeSubscribers(
	sql: Sql,
	query: string,
	values: readonly SqlValue[],
): Promise<EncodedSubscribers> {
	return encode(sql, `${selectRecords(sql.dialect)} FROM (${query}) AS people`, values);
}

/** As `encodeSubscribers`, of their values alone. `isChecked`: a stored meta stands in it as it is. */
export function tupleEncoder({ keys, isChecked = false }: { keys: TupleKeys; isChecked?: boolean }) {
	return (sql: Sql, query: string, values: readonly SqlValue[]): Promise<EncodedSubscribers> => {
		const cells = tupleKeys[keys].map((key) =>
			key === 'meta' && isChecked ? 'meta' : jsonOf(sql.dialect, key),
		);
		return encode(
			sql,
			`${selectArray(`[${cells.map(() => '%s').join(',')}]`, cells)} FROM (${query}) AS people`,
			values,
		);
	};
}

async function encode(sql: Sql, read: string, values: readonly SqlValue[]): Promise<EncodedSubscribers> {
	try {
		const [row] = await sql.tuples<[json: string, length: number, last: number | null]>(read, ...values);
		const [json, length, last] = row ?? ['[]', 0, null];
		return { json, length, last };
	} catch (error) {
		throw error instanceof Error && isMalformed.test(error.message) ? damaged(error) : error;
	}
}

/** Words of SQLite and PostgreSQL. */
const isMalformed = /malformed JSON|invalid input syntax for type json/;

const selects = new WeakMap<Dialect, string>();

function selectRecords(dialect: Dialect): string {
	const known = selects.get(dialect);
	if (known !== undefined) return known;
	const keys = Object.keys(members) as (keyof Subscriber)[];
	const form = `{${keys.map((key) => `"${key}":%s`).join(',')}}`;
	const select = selectArray(
		form,
		keys.map((key) => jsonOf(dialect, key)),
	);
	selects.set(dialect, select);
	return select;
}

/** An array as its text, its length and the last id. */
function selectArray(form: string, cells: readonly string[]): string {
	return `SELECT '[' || coalesce(string_agg(format('${form}', ${cells.join(', ')}), ','), '') || ']', count(*), max(id)`;
}

function jsonOf(dialect: Dialect, key: keyof Subscriber): string {
	const [column, form] = members[key];
	return dialect.json[form](column);
}
