import { secretsOf } from '../core/keys.js';
import type { Columns, Dialect, Insertion, NumberedInsertion, Sql, SqlValue, Together } from '../core/sql.js';
import type { WrappingKey } from '../maintenance.js';
import type { Answer, Pipeline } from './pipeline.js';

const dialect: Dialect = {
	position: 'strpos',
	least: 'least',
	json: {
		number: (column) => column,
		text: (column) => `coalesce(to_json(${column})::text, 'null')`,
		flag: (column) => `CASE ${column} WHEN 0 THEN 'false' ELSE 'true' END`,
		time: (column) => {
			const time = `timestamp 'epoch' + ${column} * interval '1 microsecond'`;
			return `coalesce(to_json(to_char(${time}, 'YYYY-MM-DD"T"HH24:MI:SS.US'))::text, 'null')`;
		},
		json: (column) => `CAST(${column} AS json)`,
	},
	oneOf: (column) =>
		`${column} IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(? AS JSONB)))`,
	table: (columns, alias) => {
		const types = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
		return `jsonb_to_recordset(CAST(? AS JSONB)) AS ${alias} (${types.join(', ')})`;
	},
	using: () => '',
	lockRows: (table) => `FOR NO KEY UPDATE OF ${table}`,
	skipLocked: 'FOR NO KEY UPDATE SKIP LOCKED',
	newSubscriberId: { before: null, value: "nextval('subscribers_id_seq')" },
	newSubscriberIds: "SELECT max(nextval('subscribers_id_seq')) FROM generate_series(1, CAST(? AS BIGINT))",
	uuidBytes: (text) => `decode(replace(${text}, '-', ''), 'hex')`,
	isReadOnly: `SELECT CAST(pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS INT)`,
	databaseSize: 'SELECT pg_database_size(current_database())',
	freeSize: 'SELECT 0',
	tableSizes: `SELECT relname AS name, pg_total_relation_size(oid) AS bytes
		FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`,
	seenState: 'SELECT pg_current_snapshot()::text',
};

const numbered = new Map<string, string>();

/** SQL texts of the core contain question marks only as parameters. */
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

interface SqlOptions {
	keys?: readonly WrappingKey[];
	shard?: number;
	alone?: () => void;
}

export function createSql(
	pipeline: Pipeline,
	{ keys = [], shard = 0, alone = () => undefined }: SqlOptions = {},
): Sql {
	const ask = (text: string, values: readonly SqlValue[]) => pipeline.ask(numberParameters(text), values);
	const askAll = async (into: Insertion, rows: readonly (readonly SqlValue[])[], returning = '') => {
		const { text, values } = insertion(into, rows);
		return await ask(`${text}${returning}`, values);
	};
	const foundOf = async ({ table, id }: NumberedInsertion, ids: readonly number[]) => {
		const { rows } = await ask(`SELECT ${id} FROM ${table} WHERE ${dialect.oneOf(id)}`, [
			JSON.stringify(ids),
		]);
		return new Set(rows.map(([one]) => Number(one)));
	};
	const unwatched = (answer: Promise<unknown>) => void answer.catch(() => undefined);
	return {
		dialect,
		secrets: secretsOf(keys),
		shard,
		alone,
		get: async <Row>(text: string, values: readonly SqlValue[] = []) =>
			toObjects(await ask(text, values))[0] as Row | undefined,
		all: async <Row>(text: string, values: readonly SqlValue[] = []) =>
			toObjects(await ask(text, values)) as Row[],
		tuples: async <Row extends readonly unknown[]>(text: string, values: readonly SqlValue[] = []) =>
			(await ask(text, values)).rows as unknown as Row[],
		allOf: async <Row>(text: string, columns: Columns, sets: readonly (readonly SqlValue[])[]) => {
			if (sets.length === 0) return [];
			const found = `SELECT found.*
				FROM ${dialect.table(columns, 'given')}
				CROSS JOIN LATERAL (${named(text, columns)}) AS found`;
			return toObjects(await ask(found, [setsAsJson(columns, sets)])) as Row[];
		},
		run: async (text, values = []) => ({ changes: (await ask(text, values)).changes }),
		write: (text, values = []) => unwatched(ask(text, values)),
		insert: async (id, text, values = []) => {
			const [row] = (await ask(`${text} RETURNING ${id}`, values)).rows;
			return row === undefined ? null : Number(row[0]);
		},
		insertAll: async (into, rows) => {
			if (rows.length === 0) return [];
			const key = Object.keys(into.columns).indexOf(into.key);
			if (into.id === into.key) {
				const { changes } = await askAll(into, rows);
				const ids = rows.map((row) => Number(row[key]));
				if (changes === rows.length) return ids;
				const found = changes === 0 ? new Set() : await foundOf(into, ids);
				return ids.map((id) => (found.has(id) ? id : null));
			}
			const { rows: made } = await askAll(into, rows, ` RETURNING ${into.key}, ${into.id}`);
			const ids = new Map(made.map(([name, id]) => [String(name), Number(id)]));
			return rows.map((row) => ids.get(String(row[key])) ?? null);
		},
		writeEach: ({ update, where, columns }, sets) => {
			if (sets.length === 0) return;
			const [changed = '', found = ''] = named(`${update}\0${where}`, columns).split('\0');
			const text = `${changed} FROM ${dialect.table(columns, 'given')} WHERE ${found}`;
			unwatched(ask(text, [setsAsJson(columns, sets)]));
		},
		writeAll: (into, rows) => {
			if (rows.length > 0) unwatched(askAll(into, rows));
		},
		number: async (text, values = []) => Number((await ask(text, values)).rows[0]?.[0] ?? 0),
		together: async <Answers extends readonly unknown[]>(questions: Together<Answers>) => {
			let failure: { error: unknown } | null = null;
			const answers = await Promise.all(
				questions.map(async (question) => {
					try {
						return await question();
					} catch (error) {
						failure ??= { error };
						return undefined;
					}
				}),
			);
			if (failure !== null) throw (failure as { error: unknown }).error;
			return answers as unknown as Answers;
		},
		// Deleted rows stay in the write-ahead log, replicas and backups, which mailctl cannot overwrite.
		overwriting: (operate) => operate(),
	};
}

/** Binds a single value for a column whose value is the same in all rows, because each array costs time. */
function insertion(
	{ table, columns, conflict }: Insertion,
	rows: readonly (readonly SqlValue[])[],
): { text: string; values: SqlValue[] } {
	const shown: string[] = [];
	const values: SqlValue[] = [];
	const arrays: { type: string; values: Buffer }[] = [];
	for (const [at, type] of Object.values(columns).entries()) {
		const value = rows[0]?.[at] ?? null;
		if (rows.every((row) => row[at] === value)) {
			shown.push(`?::${type}`);
			values.push(value);
		} else {
			arrays.push({ type, values: arrayOf(type, rows, at) });
			shown.push(`given.c${arrays.length}`);
		}
	}
	const from =
		arrays.length === 0
			? ''
			: `FROM unnest(${arrays.map(({ type }) => `?::${type}[]`).join(', ')})
				AS given (${arrays.map((_, at) => `c${at + 1}`).join(', ')})`;
	return {
		text: `INSERT INTO ${table} (${Object.keys(columns).join(', ')}) SELECT ${shown.join(', ')} ${from} ${conflict}`,
		values: [...values, ...arrays.map((array) => array.values)],
	};
}

function named(text: string, columns: Columns): string {
	const names = Object.keys(columns).values();
	return text.replace(/\?/g, () => `given.${names.next().value ?? ''}`);
}

function setsAsJson(columns: Columns, sets: readonly (readonly SqlValue[])[]): string {
	const names = Object.keys(columns);
	return JSON.stringify(sets.map((set) => Object.fromEntries(names.map((name, at) => [name, set[at]]))));
}

function toObjects({ names, rows }: Answer): Record<string, unknown>[] {
	return rows.map((row) => {
		const object: Record<string, unknown> = {};
		for (const [at, name] of names.entries()) object[name] = row[at];
		return object;
	});
}

type ElementType = Columns[string] | 'BYTEA';

const elementTypes: Readonly<Record<ElementType, number>> = { BIGINT: 20, TEXT: 25, BYTEA: 17 };

const headerBytes = 20;
const lengthBytes = 4;
const maxOctets = 3;
const isNull = -1;

/**
 * Encodes one column of all rows as a binary array, which needs neither escaping nor parsing. The array has dimensions,
 * flags, element type, length and lower bound, then each element after its length (`array_recv` in PostgreSQL's
 * src/backend/utils/adt/arrayfuncs.c).
 */
export function arrayOf(type: ElementType, rows: readonly (readonly SqlValue[])[], at: number): Buffer {
	const bytes = Buffer.allocUnsafe(rows.reduce((sum, row) => sum + roomFor(row[at] ?? null), headerBytes));
	bytes.writeInt32BE(1, 0);
	bytes.writeInt32BE(1, 4);
	bytes.writeInt32BE(elementTypes[type], 8);
	bytes.writeInt32BE(rows.length, 12);
	bytes.writeInt32BE(1, 16);
	let end = headerBytes;
	for (const row of rows) {
		const begin = end + lengthBytes;
		const length = put(bytes, begin, row[at] ?? null, type);
		bytes.writeInt32BE(length, end);
		end = begin + Math.max(length, 0);
	}
	return bytes.subarray(0, end);
}

function roomFor(value: SqlValue): number {
	if (value === null) return lengthBytes;
	if (typeof value === 'string') return lengthBytes + value.length * maxOctets;
	return lengthBytes + (typeof value === 'object' ? value.byteLength : 32);
}

function put(bytes: Buffer, at: number, value: SqlValue, type: ElementType): number {
	if (value === null) return isNull;
	if (typeof value === 'object') {
		bytes.set(value, at);
		return value.byteLength;
	}
	if (type === 'TEXT') return bytes.write(String(value), at);
	if (typeof value !== 'number') return bytes.writeBigInt64BE(BigInt(value), at) - at;
	if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is not a whole number`);
	bytes.writeInt32BE(Math.floor(value / 2 ** 32), at);
	return bytes.writeUInt32BE(value >>> 0, at + 4) - at;
}
