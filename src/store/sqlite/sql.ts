import type Database from 'better-sqlite3';
import { secretsOf } from '../core/keys.js';
import type { Sql as AsyncSql, Dialect, Insertion, SqlValue } from '../core/sql.js';
import type { WrappingKey } from '../maintenance.js';

export type Sql = {
	readonly [Name in keyof AsyncSql]: AsyncSql[Name] extends (...given: infer Given) => infer Answer
		? (...given: Given) => Awaited<Answer>
		: AsyncSql[Name];
};

const dialect: Dialect = {
	position: 'instr',
	least: 'min',
	json: {
		number: (column) => column,
		text: (column) => `json_quote(${column})`,
		flag: (column) => `iif(${column}, 'true', 'false')`,
		time: (column) => {
			const seconds = `replace(datetime(${column} / 1000000, 'unixepoch'), ' ', 'T')`;
			return `iif(${column} IS NULL, 'null', format('"%s.%06d"', ${seconds}, ${column} % 1000000))`;
		},
		// `JSON.stringify` wrote the stored JSON, so return it unchanged. If it is invalid, json() raises an error.
		json: (column) => `iif(json_valid(${column}), ${column}, json(${column}))`,
	},
	oneOf: (column) => `${column} IN (SELECT value FROM json_each(?))`,
	table: (columns, alias) => {
		const values = Object.keys(columns).map((name) => `value ->> '${name}' AS ${name}`);
		return `(SELECT ${values.join(', ')} FROM json_each(?)) AS ${alias}`;
	},
	using: (index) => `INDEXED BY ${index}`,
	lockRows: () => '',
	skipLocked: '',
	newSubscriberId: {
		before: "UPDATE id_sequences SET last = last + 1 WHERE name = 'subscribers'",
		value: "(SELECT last FROM id_sequences WHERE name = 'subscribers')",
	},
	newSubscriberIds: "UPDATE id_sequences SET last = last + ? WHERE name = 'subscribers' RETURNING last",
	uuidBytes: (text) => `unhex(replace(${text}, '-', ''))`,
	isReadOnly: 'SELECT 0',
	databaseSize: 'SELECT page_count * page_size FROM pragma_page_count, pragma_page_size',
	freeSize: 'SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size',
	// Returns no rows above 128 MiB, because the query would read every page. 128 MiB take a quarter of a second.
	tableSizes: `SELECT coalesce(t.tbl_name, d.name) AS name, sum(d.pgsize) AS bytes
		FROM pragma_page_count p
		CROSS JOIN dbstat d
		LEFT JOIN sqlite_schema t ON t.name = d.name
		WHERE p.page_count <= 16384 AND d.aggregate = TRUE
		GROUP BY 1`,
	// The first number changes with commits of other connections, the second with each row that this connection changes.
	seenState: "SELECT data_version || ' ' || total_changes() FROM pragma_data_version",
};

/** SQLite recompiles a statement for each new value of a bare `LIMIT ?`, which doubles the time of a short read. */
function withUnseenLimits(text: string): string {
	return text.replaceAll(/\bLIMIT \?/g, 'LIMIT (? + 0)');
}

/**
 * A load inserts this many rows per statement, which saves 12% of the time. With foreign keys on, SQLite would copy
 * each changed page to undo a failed statement. The load would then take twice the time.
 */
const rowsTogether = 16;

const none: readonly SqlValue[] = [];

export function createSql(db: Database.Database, keys: readonly WrappingKey[] = []): Sql {
	type Statement = Database.Statement<SqlValue[], unknown>;
	const cached = (form: (fresh: Statement) => Statement) => {
		const known = new Map<string, Statement>();
		return (text: string) => {
			let found = known.get(text);
			if (found === undefined) {
				found = form(db.prepare<SqlValue[], unknown>(withUnseenLimits(text)));
				known.set(text, found);
			}
			return found;
		};
	};
	const statement = cached((fresh) => fresh);
	const rawStatement = cached((fresh) => fresh.raw());
	const kept = (textOf: (into: Insertion, names: string, places: string) => string) => {
		const known = new Map<Insertion, Statement>();
		return (into: Insertion) => {
			const insert = known.get(into);
			if (insert !== undefined) return insert;
			const names = Object.keys(into.columns);
			const fresh = statement(textOf(into, names.join(', '), names.map(() => '?').join(', ')));
			known.set(into, fresh);
			return fresh;
		};
	};
	const insertion = kept(
		({ table, conflict }, names, places) => `INSERT INTO ${table} (${names}) VALUES (${places}) ${conflict}`,
	);
	const insertionOfMany = kept(
		({ table }, names, places) =>
			`INSERT OR ROLLBACK INTO ${table} (${names}) VALUES ${Array(rowsTogether).fill(`(${places})`).join(', ')}`,
	);
	/** With OR ROLLBACK, an existing row ends the transaction, and SQLite copies no pages to undo the statement. */
	const insertMany = (into: Insertion, rows: readonly (readonly SqlValue[])[]) => {
		const insert = insertionOfMany(into);
		let at = 0;
		for (; at + rowsTogether <= rows.length; at += rowsTogether) {
			const values: SqlValue[] = [];
			for (let place = at; place < at + rowsTogether; place += 1)
				for (const value of rows[place] ?? []) values.push(value);
			insert.run(...values);
		}
		for (const values of rows.slice(at)) insertion(into).run(...values);
	};
	const isLoad = () => db.pragma('foreign_keys', { simple: true }) === 0;
	// Callers state the row types. STRICT tables and the tests check them.
	return {
		dialect,
		secrets: secretsOf(keys),
		shard: 0,
		alone: () => undefined,
		get: (text, values = none) => statement(text).get(...values),
		all: (text, values = none) => statement(text).all(...values),
		tuples: (text, values = none) => rawStatement(text).all(...values) as (readonly unknown[])[],
		allOf: (text, _columns, sets) => {
			const select = statement(text);
			const [one] = sets;
			if (one !== undefined && sets.length === 1) return select.all(...one);
			const rows: unknown[] = [];
			for (const set of sets) for (const row of select.all(...set)) rows.push(row);
			return rows;
		},
		run: (text, values = none) => statement(text).run(...values),
		write: (text, values = none) => void statement(text).run(...values),
		insert: (_, text, values = none) => {
			const { changes, lastInsertRowid } = statement(text).run(...values);
			return changes === 1 ? Number(lastInsertRowid) : null;
		},
		insertAll: (into, rows) => {
			const idAt = Object.keys(into.columns).indexOf(into.id);
			if (into.conflict === '' && idAt !== -1 && isLoad()) {
				insertMany(into, rows);
				return rows.map((row) => Number(row[idAt]));
			}
			const insert = insertion(into);
			return rows.map((row) => {
				const { changes, lastInsertRowid } = insert.run(...row);
				return changes === 1 ? Number(lastInsertRowid) : null;
			});
		},
		writeEach: ({ update, where }, sets) => {
			if (sets.length === 0) return;
			const change = statement(`${update} WHERE ${where}`);
			for (const set of sets) change.run(...set);
		},
		writeAll: (into, rows) => {
			const insert = insertion(into);
			for (const row of rows) insert.run(...row);
		},
		number: (text, values = none) => {
			const row = rawStatement(text).get(...values) as readonly unknown[] | undefined;
			return Number(row?.[0] ?? 0);
		},
		together: (questions) => questions.map((question) => question()),
		overwriting: (operate) => {
			db.pragma('secure_delete = ON');
			try {
				return operate();
			} finally {
				db.pragma('secure_delete = FAST');
			}
		},
	};
}
