/** A connection with its prepared statements: each text is compiled once and kept. */
import type Database from 'better-sqlite3';

export type SqlValue = string | number | bigint | null | Uint8Array;

export interface Sql {
	readonly db: Database.Database;
	/** The first row; undefined when there is none. */
	get<Row>(text: string, ...values: SqlValue[]): Row | undefined;
	all<Row>(text: string, ...values: SqlValue[]): Row[];
	/** Rows as arrays, in the order of the columns: half the time of objects, for what is read by the hundred. */
	tuples<Row extends readonly unknown[]>(text: string, ...values: SqlValue[]): Row[];
	run(text: string, ...values: SqlValue[]): Database.RunResult;
	/** The only column of the first row; for statements that always yield a row. */
	number(text: string, ...values: SqlValue[]): number;
}

/** For one connection, whose owner closes it. */
export function createSql(db: Database.Database): Sql {
	const cache = new Map<string, Database.Statement<SqlValue[], unknown>>();
	const statement = (text: string) => {
		const known = cache.get(text);
		if (known !== undefined) return known;
		const fresh = db.prepare<SqlValue[], unknown>(text);
		cache.set(text, fresh);
		return fresh;
	};
	// Apart from the others: what a statement yields is a state of the statement.
	const rawCache = new Map<string, Database.Statement<SqlValue[], unknown>>();
	const rawStatement = (text: string) => {
		const known = rawCache.get(text);
		if (known !== undefined) return known;
		const fresh = db.prepare<SqlValue[], unknown>(text).raw();
		rawCache.set(text, fresh);
		return fresh;
	};
	// The row types are claims of each query about its own columns: STRICT tables and the suite hold them to it.
	return {
		db,
		get: <Row>(text: string, ...values: SqlValue[]) => statement(text).get(...values) as Row | undefined,
		all: <Row>(text: string, ...values: SqlValue[]) => statement(text).all(...values) as Row[],
		tuples: <Row extends readonly unknown[]>(text: string, ...values: SqlValue[]) =>
			rawStatement(text).all(...values) as Row[],
		run: (text, ...values) => statement(text).run(...values),
		number: (text, ...values) => {
			const row = rawStatement(text).get(...values) as readonly unknown[] | undefined;
			return Number(row?.[0] ?? 0);
		},
	};
}
