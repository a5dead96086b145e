import { formatDateTime, type Micros } from '../../api/datetime.js';
import { isRecord } from '../../api/json.js';
import type { Envelope } from '../../api/messages.js';
import { filledSubject } from '../../api/variables.js';
import { damaged } from '../errors.js';
import type { PageOf, Slice, Written } from '../store.js';

export type SqlValue = string | number | bigint | null | Uint8Array;

export interface Changed {
	changes: number;
}

export type Columns = Readonly<Record<string, 'BIGINT' | 'TEXT'>>;

/** How a column stores a value: a number, a text, 0 or 1, microseconds, JSON. Texts and times may be null. */
export type Form = 'number' | 'text' | 'flag' | 'time' | 'json';

export interface Dialect {
	/** The function that returns the position of the second text in the first, from 1; 0 if it is absent. */
	position: string;
	least: string;
	/** Expressions for the JSON text of a column, equal to what `JSON.stringify` and `formatDateTime` write. */
	readonly json: Readonly<Record<Form, (column: string) => string>>;
	oneOf(column: string): string;
	table(columns: Columns, alias: string): string;
	/** Follows a table name to make the query use this index. */
	using(index: string): string;
	/** Ends a SELECT and locks its rows of this table, because the operation will change them. Other writers wait. */
	lockRows(table: string): string;
	/** Like `lockRows` for a query of one table, but skips rows that other transactions have locked. */
	skipLocked: string;
	/** How a new subscriber gets an id: a statement to run before the insert, if any, and the value to insert. */
	newSubscriberId: { before: string | null; value: string };
	/** Reserves as many ids as its parameter says, and returns the last one. The ids are consecutive. */
	newSubscriberIds: string;
	uuidBytes(text: string): string;
	isReadOnly: string;
	databaseSize: string;
	freeSize: string;
	/** Returns each table with its bytes, indexes included; nothing for a SQLite file too large to read. */
	tableSizes: string;
	/** Returns a text that differs after any change of data that this connection can see. */
	seenState: string;
}

export interface Secrets {
	wrap(plain: string, place: string): string;
	unwrap(stored: string, place: string): string;
}

export interface Insertion {
	table: string;
	columns: Columns;
	/** The ON CONFLICT clause. If it is empty, an existing row makes the statement fail. */
	conflict: string;
}

export interface NumberedInsertion extends Insertion {
	key: string;
	/** The column that `insertAll` returns. If it is `key`, the caller must give each row an unused id. */
	id: string;
}

/** A change that is applied to many sets of values. `update`: the text before FROM; `where`: the text after WHERE. */
export interface Change {
	update: string;
	where: string;
	columns: Columns;
}

export type Together<Answers extends readonly unknown[]> = readonly [
	...{ [At in keyof Answers]: () => Promise<Answers[At]> },
];

/** Runs statements in the transaction that the driver of the store has begun. */
export interface Sql {
	readonly dialect: Dialect;
	readonly secrets: Secrets;
	/** Counters with many writers have a row per shard. This connection writes only to this shard. */
	readonly shard: number;
	/** Makes this the only running operation of the project. On PostgreSQL, one with a shared lock starts again. */
	alone(): void;
	get<Row>(text: string, values?: readonly SqlValue[]): Promise<Row | undefined>;
	all<Row>(text: string, values?: readonly SqlValue[]): Promise<Row[]>;
	/** Returns rows as arrays in column order. For hundreds of rows, arrays take half the time of objects. */
	tuples<Row extends readonly unknown[]>(text: string, values?: readonly SqlValue[]): Promise<Row[]>;
	/** Returns the rows for all sets of values. PostgreSQL runs one statement, and may return the rows in any order. */
	allOf<Row>(text: string, columns: Columns, sets: readonly (readonly SqlValue[])[]): Promise<Row[]>;
	run(text: string, values?: readonly SqlValue[]): Promise<Changed>;
	/** On PostgreSQL, does not wait, which saves a round trip. An error makes the next query or COMMIT fail. */
	write(text: string, values?: readonly SqlValue[]): void;
	/** Returns the new row's `id`, or null after a conflict. SQLite returns the rowid: RETURNING doubles the cost. */
	insert(id: string, text: string, values?: readonly SqlValue[]): Promise<number | null>;
	/** Returns the `id` of each row, or null if a conflict skipped the row. */
	insertAll(into: NumberedInsertion, rows: readonly (readonly SqlValue[])[]): Promise<(number | null)[]>;
	/** Applies the change for each set of values; does not wait (see `write`). No two sets may change the same row. */
	writeEach(change: Change, sets: readonly (readonly SqlValue[])[]): void;
	writeAll(into: Insertion, rows: readonly (readonly SqlValue[])[]): void;
	number(text: string, values?: readonly SqlValue[]): Promise<number>;
	/** Runs independent queries. PostgreSQL answers them in shared round trips, in any order. */
	together<Answers extends readonly unknown[]>(questions: Together<Answers>): Promise<Answers>;
	/** Makes SQLite overwrite the data that `operate` deletes, because deleted data stays readable in the file. */
	overwriting<T>(operate: () => Promise<T>): Promise<T>;
}

export async function exists(sql: Sql, select: string, values?: readonly SqlValue[]): Promise<boolean> {
	return (await sql.number(`SELECT EXISTS (${select})`, values)) === 1;
}

export async function column<Value>(
	sql: Sql,
	select: string,
	values?: readonly SqlValue[],
): Promise<Value[]> {
	return (await sql.tuples<[Value]>(select, values)).map(([value]) => value);
}

export function each<Item, Answer>(
	sql: Sql,
	items: readonly Item[],
	ask: (item: Item, at: number) => Promise<Answer>,
): Promise<Answer[]> {
	return sql.together<Answer[]>(items.map((item, at) => () => ask(item, at)));
}

export type Row = Readonly<Record<string, SqlValue>>;

function insertion(table: string, row: Row): string {
	const names = Object.keys(row);
	return `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`;
}

export function insertInto(sql: Sql, table: string, row: Row, conflict = ''): void {
	sql.write(`${insertion(table, row)} ${conflict}`, Object.values(row));
}

export function insertNumbered(sql: Sql, table: string, row: Row, id = 'id'): Promise<number> {
	return sql.number(`${insertion(table, row)} RETURNING ${id}`, Object.values(row));
}

export interface Conditions {
	where: string;
	values: SqlValue[];
}

export function conditionsOf(
	conditions: readonly (readonly [condition: string, ...values: (SqlValue | undefined)[]])[],
): Conditions {
	const parts = ['TRUE'];
	const all: SqlValue[] = [];
	for (const [condition, ...values] of conditions) {
		if (values.includes(undefined)) continue;
		parts.push(condition);
		all.push(...values.filter((value) => value !== undefined));
	}
	return { where: parts.join(' AND '), values: all };
}

export type Dated<Record extends { date_created: string }> = Omit<Record, 'date_created'> & {
	date_created: Micros;
};

export function dated<Row extends { date_created: Micros }>(row: Row) {
	return { ...row, date_created: formatDateTime(row.date_created) };
}

export function timeOf(at: Micros): string;
export function timeOf(at: Micros | null): string | null;
export function timeOf(at: Micros | null): string | null {
	return at === null ? null : formatDateTime(at);
}

export interface SubscriberRow {
	id: number;
	list_id: number;
	email: string;
	email_key: string;
	name: string;
	is_active: number;
	disable_reason: string | null;
	is_email_verified: number;
	meta: string;
	source: string;
	opt_in_signed: Micros | null;
	created_at: Micros;
	import_seq: number | null;
}

/** The address as given. The column stores '' if the address equals its key, as most do. */
export const emailColumn = "coalesce(nullif(email, ''), email_key) AS email";

export const subscriberColumns = `id, list_id, ${emailColumn}, email_key, name, is_active, disable_reason, is_email_verified, meta, source, opt_in_signed, created_at, import_seq`;

export const joinedMessages = `messages m
	JOIN submissions s ON s.seq = m.submission_seq
	LEFT JOIN campaigns g ON g.seq = s.campaign_seq`;

/** Columns for `subjectOf` from message `m`, submission `s` and content `c`. Null if the subject has no variables. */
export const variablesOfSubject = `CASE WHEN c.subject LIKE '%#%' THEN m.variables END AS own_variables,
	CASE WHEN c.subject LIKE '%#%' THEN s.context END AS shared_variables`;

export function subjectOf(
	subject: string,
	{ to, own, shared }: { to: string; own: string | null; shared: string | null },
): string {
	if (own === null || shared === null || !subject.includes('#')) return subject;
	return filledSubject(subject, { email: to, ...parseTexts(shared), ...parseTexts(own) });
}

export function parseStored(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch (cause) {
		throw damaged(cause);
	}
}

export function parseRecord(text: string): Record<string, unknown> {
	const value = parseStored(text);
	if (!isRecord(value)) throw damaged(new TypeError('a stored object is none'));
	return value;
}

export function parseTexts(text: string): Record<string, string> {
	const record = parseRecord(text);
	if (Object.values(record).every((value) => typeof value === 'string'))
		return record as Record<string, string>;
	return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, String(value)]));
}

export function parseNames(text: string): string[] {
	return textsOf(parseStored(text));
}

function textsOf(value: unknown): string[] {
	return Array.isArray(value) ? value.map(String) : [];
}

export function parseUsed(text: string): string[] | null {
	return text === 'null' ? null : parseNames(text);
}

/** A missing `reply_to`, `cc`, `bcc` or `headers` becomes empty. Throws if the text is not a JSON object. */
export function readEnvelope(text: string): Envelope {
	const stored = parseRecord(text);
	return {
		from: String(stored['from']),
		reply_to: textsOf(stored['reply_to']),
		cc: textsOf(stored['cc']),
		bcc: textsOf(stored['bcc']),
		headers: parseTexts(JSON.stringify(stored['headers'] ?? {})),
	};
}

/** `wake_at` of messages set aside for a limit: they wake only when the limit allows it. */
export const setAside: Micros = Number.MAX_SAFE_INTEGER;

export function flag(value: boolean): 0 | 1 {
	return value ? 1 : 0;
}

interface Paged extends Partial<Conditions> {
	columns: string;
	from: string;
	joins?: string;
	order: string;
}

export async function selectPage<Row, Record>(
	sql: Sql,
	{ columns, from, joins = '', where, values = [], order }: Paged,
	page: PageOf,
	toRecord: (row: Row) => Record,
): Promise<Slice<Record>> {
	const wanted = where === undefined ? '' : `WHERE ${where}`;
	const [count, rows] = await sql.together([
		() => sql.number(`SELECT count(*) FROM ${from} ${wanted}`, values),
		() =>
			sql.all<Row>(`SELECT ${columns} FROM ${from} ${joins} ${wanted} ORDER BY ${order} LIMIT ? OFFSET ?`, [
				...values,
				...span(page),
			]),
	]);
	return { count, results: rows.map(toRecord) };
}

/** Expects up to `limit + 1` rows. `next`: the key of the last shown row, or null if no row follows. */
export function sliceOf<Row>(rows: readonly Row[], limit: number, keyOf: (row: Row) => number) {
	const shown = rows.slice(0, limit);
	const last = shown.at(-1);
	return { shown, next: last === undefined || rows.length <= limit ? null : keyOf(last) };
}

export function writtenOf<Record>(record: Record | null): Written<Record> {
	return record === null ? { kind: 'not_found' } : { kind: 'written', record };
}

export function span({ page, page_size }: PageOf): [limit: number, offset: number] {
	return [page_size, (page - 1) * page_size];
}

/** Finds the first row created at `at` or later. A binary search works, because later rows have higher ids. */
export async function findSince(sql: Sql, table: string, key: string, at: Micros) {
	const [[first, last] = [1, 0]] = await sql.tuples<[number, number]>(
		`SELECT coalesce(min(${key}), 1), coalesce(max(${key}), 0) FROM ${table}`,
	);
	let [low, high] = [first, last + 1];
	while (low < high) {
		const middle = Math.floor((low + high) / 2);
		const [row] = await sql.tuples<[id: number, created_at: Micros]>(
			`SELECT ${key}, created_at FROM ${table} WHERE ${key} >= ? ORDER BY ${key} LIMIT 1`,
			[middle],
		);
		if (row === undefined || row[1] >= at) high = middle;
		else low = row[0] + 1;
	}
	return { first, last, found: low };
}
