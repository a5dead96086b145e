/** The database as an operation uses it: statements by their text, in the transaction that its driver has begun. */

export type SqlValue = string | number | bigint | null | Uint8Array;

export interface Changed {
	changes: number;
}

export type Columns = Readonly<Record<string, 'BIGINT' | 'TEXT'>>;

/** How a column holds a value of a record: a number of 0 and 1, microseconds, JSON. Texts and times may be null. */
export type Form = 'number' | 'text' | 'flag' | 'time' | 'json';

export interface Dialect {
	/** A function of two texts: where the second begins in the first, from 1; 0 where it is not in it. */
	position: string;
	least: string;
	/** The JSON of a column, as a text: what `JSON.stringify` makes of the value, `formatDateTime` of a time. */
	readonly json: Readonly<Record<Form, (column: string) => string>>;
	oneOf(column: string): string;
	table(columns: Columns, alias: string): string;
	/** Follows the name of a table to read it along this index. */
	using(index: string): string;
	/** Ends a SELECT when the operation is about to change its rows of that table: others that change them wait. */
	lockRows(table: string): string;
	/** The same of its only table, without the rows that others have locked. */
	skipLocked: string;
	/** How a new subscriber gets an id: a statement before its insert, if one is needed, and the value there. */
	newSubscriberId: { before: string | null; value: string };
	/** Takes as many ids as its parameter says, while nothing else takes any; yields the last. */
	newSubscriberIds: string;
	uuidBytes(text: string): string;
	isReadOnly: string;
	databaseSize: string;
	freeSize: string;
	/** Yields tables by name and their bytes, indexes included; none where that would read a large file. */
	tableSizes: string;
	/** Yields a text that is another one after each change of data that a read could see. */
	seenState: string;
}

export interface Secrets {
	wrap(plain: string, place: string): string;
	unwrap(stored: string, place: string): string;
}

export interface Insertion {
	table: string;
	columns: Columns;
	/** Decides about a row that is there already. Empty: none is, or the database refuses the statement. */
	conflict: string;
}

export interface NumberedInsertion extends Insertion {
	key: string;
	/** The column that the database numbers, or the key: then rows bring ids that no row of the table has. */
	id: string;
}

/** A change of rows of one table, the same for many sets of values: `update` ends before FROM, `where` after WHERE. */
export interface Change {
	update: string;
	where: string;
	columns: Columns;
}

export type Together<Answers extends readonly unknown[]> = readonly [
	...{ [At in keyof Answers]: () => Promise<Answers[At]> },
];

export interface Sql {
	readonly dialect: Dialect;
	readonly secrets: Secrets;
	/** Counters that many writers change are kept in shards: which of them changes with this connection. */
	readonly shard: number;
	/** From here on the operation changes what others of the project depend on: on PostgreSQL it begins again without them. */
	alone(): void;
	get<Row>(text: string, values?: readonly SqlValue[]): Promise<Row | undefined>;
	all<Row>(text: string, values?: readonly SqlValue[]): Promise<Row[]>;
	/** Rows as arrays, in the order of the columns: half the time of objects, for reads of hundreds of rows. */
	tuples<Row extends readonly unknown[]>(text: string, values?: readonly SqlValue[]): Promise<Row[]>;
	/** Rows for each set of values, in the order of the columns; on PostgreSQL by one statement. It locks rows in that order. */
	allOf<Row>(text: string, columns: Columns, sets: readonly (readonly SqlValue[])[]): Promise<Row[]>;
	run(text: string, values?: readonly SqlValue[]): Promise<Changed>;
	/** Nothing depends on the answer: it is sent with the next question or the end, which fails if it does. */
	write(text: string, values?: readonly SqlValue[]): void;
	/** Inserts one row; its `id`, null after a conflict. RETURNING would cost SQLite as much again as the insert. */
	insert(id: string, text: string, values?: readonly SqlValue[]): Promise<number | null>;
	/** For each row its `id`, null where a conflict left the row out. */
	insertAll(into: NumberedInsertion, rows: readonly (readonly SqlValue[])[]): Promise<(number | null)[]>;
	/** Changes rows by each set, none of which changes a row of another; nothing depends on its answer. */
	writeEach(change: Change, sets: readonly (readonly SqlValue[])[]): void;
	writeAll(into: Insertion, rows: readonly (readonly SqlValue[])[]): void;
	number(text: string, values?: readonly SqlValue[]): Promise<number>;
	/** Asks all; none needs another's answer, and on PostgreSQL they share round trips. Their steps come in any order. */
	together<Answers extends readonly unknown[]>(questions: Together<Answers>): Promise<Answers>;
	/** Overwrites the bytes that `operate` deletes in the database file, which stay readable otherwise. */
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

/** Joins conditions with their values. One with an undefined value is left out. */
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
