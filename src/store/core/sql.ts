/** The database as an operation uses it: statements by their text, in the transaction that its driver has begun. */

export type SqlValue = string | number | bigint | null | Uint8Array;

/** The effect of a statement. */
export interface Changed {
	/** Rows. */
	changes: number;
	/** Of the last row inserted. */
	lastInsertRowid: number | bigint;
}

export interface Sql {
	/** The first row; undefined when there is none. */
	get<Row>(text: string, ...values: SqlValue[]): Promise<Row | undefined>;
	all<Row>(text: string, ...values: SqlValue[]): Promise<Row[]>;
	/** Rows as arrays, in the order of the columns: half the time of objects, for reads of hundreds of rows. */
	tuples<Row extends readonly unknown[]>(text: string, ...values: SqlValue[]): Promise<Row[]>;
	run(text: string, ...values: SqlValue[]): Promise<Changed>;
	/** The only column of the first row; for statements that always yield a row. */
	number(text: string, ...values: SqlValue[]): Promise<number>;
	/**
	 * Overwrites the bytes that `operate` deletes in the database file. Deleted bytes otherwise stay readable until their
	 * page is used again.
	 */
	overwriting<T>(operate: () => Promise<T>): Promise<T>;
}
