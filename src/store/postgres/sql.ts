/** A connection as the core uses it: statements with numbered parameters, values as SQLite gives them. */
import type { ClientBase, CustomTypesConfig, QueryArrayConfig, QueryArrayResult } from 'pg';
import { secretsOf } from '../core/keys.js';
import type { Dialect, Sql, SqlValue } from '../core/sql.js';
import type { WrappingKey } from '../keys.js';

const dialect: Dialect = {
	position: 'strpos',
	least: 'least',
	jsonText: (column, name) => `CAST(${column} AS jsonb) ->> '${name}'`,
	using: () => '',
	databaseSize: 'SELECT pg_database_size(current_database())',
	seenState: 'SELECT pg_current_snapshot()::text',
};

/** OIDs of pg_type. */
const types = { bool: 16, bytea: 17, int8: 20, int2: 21, int4: 23, float4: 700, float8: 701, numeric: 1700 };
const numeric: ReadonlySet<number> = new Set([
	types.int2,
	types.int4,
	types.int8,
	types.float4,
	types.float8,
	types.numeric,
]);

/** Numbers of all kinds are numbers, truth is 1 or 0, octets are a Buffer, all else is text. */
export const valueTypes: CustomTypesConfig = {
	getTypeParser: (oid: number) => {
		if (numeric.has(oid)) return Number;
		if (oid === types.bool) return (text: string) => (text === 't' ? 1 : 0);
		// `\x` and two digits for each octet.
		if (oid === types.bytea) return (text: string) => Buffer.from(text.slice(2), 'hex');
		return (text: string) => text;
	},
};

const numbered = new Map<string, string>();

/** `?` becomes `$1`, `$2`, …; no text of the core has a question mark of another meaning. */
function numberParameters(text: string): string {
	const known = numbered.get(text);
	if (known !== undefined) return known;
	let number = 0;
	const fresh = text.replace(/\?/g, () => {
		number += 1;
		return `$${number}`;
	});
	numbered.set(text, fresh);
	return fresh;
}

/** For one connection, in the transaction that its owner has begun. `keys`: those of its secrets. */
export function createSql(client: ClientBase, keys: readonly WrappingKey[] = []): Sql {
	const query = async <Row extends object>(text: string, values: SqlValue[]) =>
		await client.query<Row>(numberParameters(text), values);
	const tuples = async (text: string, values: SqlValue[]): Promise<QueryArrayResult<unknown[]>> => {
		const config: QueryArrayConfig = { text: numberParameters(text), values, rowMode: 'array' };
		return await client.query<unknown[]>(config);
	};
	// The row types are claims of each query about its own columns, as on SQLite.
	return {
		dialect,
		secrets: secretsOf(keys),
		get: async <Row>(text: string, ...values: SqlValue[]) =>
			(await query<object>(text, values)).rows[0] as Row | undefined,
		all: async <Row>(text: string, ...values: SqlValue[]) =>
			(await query<object>(text, values)).rows as Row[],
		tuples: async <Row extends readonly unknown[]>(text: string, ...values: SqlValue[]) =>
			(await tuples(text, values)).rows as unknown as Row[],
		run: async (text, ...values) => ({ changes: (await query(text, values)).rowCount ?? 0 }),
		insert: async (id, text, ...values) => {
			const [row] = (await tuples(`${text} RETURNING ${id}`, values)).rows;
			return row === undefined ? null : Number(row[0]);
		},
		number: async (text, ...values) => Number((await tuples(text, values)).rows[0]?.[0] ?? 0),
		// Deleted rows stay in the write-ahead log, in replicas and in backups, which nothing here can overwrite.
		overwriting: (operate) => operate(),
	};
}
