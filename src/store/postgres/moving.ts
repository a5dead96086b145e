/** A PostgreSQL schema as one of the two databases of a move. */
import { hostname } from 'node:os';
import type { ClientBase } from 'pg';
import { microsPerSecond } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { countSecrets } from '../core/keys.js';
import { findFresh } from '../core/processes.js';
import type { Sql } from '../core/sql.js';
import {
	type Found,
	type Mark,
	type Movable,
	markVersion,
	notMoved,
	type Row,
	type Table,
	type Value,
	whyMarked,
} from '../moving.js';
import { shownDatabase } from '../url.js';
import { arrayOf } from './arrays.js';
import { serverClock } from './clock.js';
import { openDatabase, type Session } from './connection.js';
import { migrate, readMark, readVersion, schemaVersion } from './migrations.js';
import { readPlace } from './place.js';

/** Sees the processes of others alone: it has no heartbeat. */
const me = { id: '', role: 'cli', host: hostname(), pid: process.pid };

/** Connects when it is first used. Throws `StoreError` for a URL that names no database. */
export function movablePostgres(url: string): Movable {
	const place = readPlace(url);
	const { schema } = place;
	const name = shownDatabase(url);
	const database = openDatabase({
		...{ place, size: 2, role: 'migrate', keys: [], lockTimeoutMs: 10_000, isTrial: false },
	});
	let own: Mark | null = null;
	const permit = (sql: Sql) => sql.run(`SELECT set_config('mailctl.move', ?, TRUE)`, own?.id ?? '');
	const read = <T>(operate: (sql: Sql) => Promise<T>) => database.read(({ sql }) => operate(sql));
	const write = <T>(operate: (session: Session) => Promise<T>) =>
		database.write(async (session) => {
			await permit(session.sql);
			return await operate(session);
		});
	const refuse = (why: string) => new StoreError('not_a_database', `${name} ${why}`);
	return {
		name,
		schema: schemaVersion,
		keepsNul: false,
		look: () => read((sql) => look(sql, name)),
		begin: async (mark, now) => {
			own = mark;
			await write(async (session) => {
				const { sql, client } = session;
				if (schema !== 'public') await client.query(`CREATE SCHEMA IF NOT EXISTS "${schema}"`);
				if ((await readVersion(sql, name, { mayBeMarked: true })) === 0)
					await migrate(session, { name, now });
				await shutTables(session, mark);
				await assertUnused(sql, name);
				const filled = await filledTables(sql);
				if (filled.length > 0) throw refuse(`is not empty (${filled.join(', ')})`);
				await setMark(sql, mark);
			});
		},
		goOn: async (mark) => {
			own = mark;
		},
		shut: async (mark) => {
			own = mark;
			await write(async (session) => {
				// Waits for the transactions that write.
				await shutTables(session, mark);
				if (!mark.isOver) await assertUnused(session.sql, name);
				await setMark(session.sql, mark);
			});
		},
		open: async (mark) => {
			own = mark;
			await write(async ({ sql, client }) => {
				const known = await readMark(sql);
				if (known === null) return;
				if (known.id !== mark.id) throw refuse('has another mark');
				await sql.run('DELETE FROM migrations WHERE version = ?', markVersion);
				await client.query('DROP FUNCTION mailctl_moved() CASCADE');
			});
		},
		clear: async (mark) => {
			own = mark;
			await write(async ({ sql, client }) => {
				if ((await readVersion(sql, name, { mayBeMarked: true })) === 0) return;
				const known = await readMark(sql);
				if (known?.role !== 'copy' || known.id !== mark.id) return;
				const names = (await tablesOf(sql)).map((table) => `"${table.name}"`);
				await client.query(`DROP TABLE ${names.join(', ')} CASCADE; DROP FUNCTION mailctl_moved()`);
			});
		},
		tables: () => read(tablesOf),
		count: (table) => read((sql) => sql.number(`SELECT count(*) FROM "${table.name}"`)),
		widest: ({ name: table, columns }) => {
			const sizes = columns
				.filter(({ type }) => type !== 'integer')
				.map((column) => `coalesce(octet_length("${column.name}"), 0)`);
			const text = `SELECT coalesce(max(${['0', ...sizes].join(' + ')}), 0) FROM "${table}"`;
			return read(async (sql) => 8 * columns.length + (await sql.number(text)));
		},
		read: (table, after, limit) => {
			const key = namesOf(table, table.key);
			const where = after === null ? '' : `WHERE (${key}) > (${table.key.map(() => '?').join(', ')})`;
			const text = `SELECT ${namesOf(table)} FROM "${table.name}" ${where} ORDER BY ${key} LIMIT ?`;
			return read((sql) => sql.tuples<Row>(text, ...(after ?? []), limit));
		},
		last: (table) => {
			const order = table.key.map((at) => `"${table.columns[at]?.name}" DESC`).join(', ');
			const text = `SELECT ${namesOf(table, table.key)} FROM "${table.name}" ORDER BY ${order} LIMIT 1`;
			return read(async (sql) => (await sql.tuples<Value[]>(text))[0] ?? null);
		},
		write: (table, rows) => {
			const types = { integer: 'BIGINT', text: 'TEXT', blob: 'BYTEA' } as const;
			const arrays = table.columns.map(({ type }) => `?::${types[type]}[]`);
			const text = `INSERT INTO "${table.name}" (${namesOf(table)}) OVERRIDING SYSTEM VALUE
				SELECT * FROM unnest(${arrays.join(', ')})
				ON CONFLICT DO NOTHING`;
			const values = table.columns.map(({ type }, at) => arrayOf(types[type], rows, at));
			return database.write(async ({ sql }) => {
				await sql.together([() => permit(sql), () => sql.run(text, ...values)]);
			});
		},
		ids: () => read(async (sql) => new Map((await idsOf(sql)).map(({ table, last }) => [table, last]))),
		raiseIds: (ids) =>
			write(async ({ sql }) => {
				for (const { table, column, last } of await idsOf(sql)) {
					const highest = await sql.number(`SELECT coalesce(max("${column}"), 0) FROM "${table}"`);
					const goal = Math.max(highest, ids.get(table) ?? 0);
					if (goal > last)
						await sql.run('SELECT setval(pg_get_serial_sequence(?, ?), ?)', `"${table}"`, column, goal);
				}
			}),
		settle: async () => {
			for (const { name: table } of await read(tablesOf))
				await write(({ sql }) => sql.run(`ANALYZE "${table}"`));
		},
		close: () => database.close(),
	};
}

async function look(sql: Sql, name: string): Promise<Found | null> {
	const found = await readVersion(sql, name, { mayBeMarked: true, mayBeNewer: true });
	if (found === 0) return null;
	const identity = await sql.get<{ text: string }>(
		`SELECT concat(pg_postmaster_start_time(), ' ', oid, ' ', current_schema()) AS text
		FROM pg_database WHERE datname = current_database()`,
	);
	const mark = await readMark(sql);
	const known = { identity: identity?.text ?? '', schema: found, mark };
	// Another schema may lack the tables.
	if (found !== schemaVersion) return { ...known, usedBy: [], filled: [], keys: [] };
	return {
		...known,
		usedBy: (await findFresh(sql, me, await sql.number(serverClock))).map(({ host, pid, role }) => ({
			host,
			pid,
			role,
		})),
		filled: await filledTables(sql),
		keys: [...(await countSecrets(sql)).keys()].filter((key) => key !== null),
	};
}

/** Commands have no heartbeat: what they send has a lease. Both are by the server's clock. */
async function assertUnused(sql: Sql, name: string): Promise<void> {
	const now = await sql.number(serverClock);
	const refuse = (why: string) =>
		new StoreError('busy_elsewhere', `${name} is in use, and nothing was changed: ${why}`);
	const [other] = await findFresh(sql, me, now);
	if (other !== undefined) throw refuse(`${other.role} (pid ${other.pid} on ${other.host})`);
	const until = await sql.number(
		`SELECT coalesce(max(until), 0) FROM (
			SELECT max(wake_at) AS until FROM messages WHERE state = 'leased'
			UNION ALL SELECT max(due_at) FROM webhook_deliveries WHERE state = 'sending'
		) leases`,
	);
	if (until > now)
		throw refuse(
			`it is sending, or was killed at it; the last lease ends in ${Math.ceil((until - now) / microsPerSecond)} s`,
		);
}

/** From the end of the transaction on, the server itself refuses every write that is not this move's. */
async function shutTables({ sql, client }: Session, mark: Mark): Promise<void> {
	const isShut = await sql.number(`SELECT to_regproc('mailctl_moved') IS NOT NULL`);
	await client.query(`CREATE OR REPLACE FUNCTION mailctl_moved() RETURNS trigger LANGUAGE plpgsql
		AS ${literal(client, bodyOf(client, mark))}`);
	if (isShut === 1) return;
	const triggers = (await tablesOf(sql)).map(
		(table) => `CREATE TRIGGER mailctl_moved BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON "${table.name}"
			FOR EACH STATEMENT EXECUTE FUNCTION mailctl_moved()`,
	);
	await client.query(triggers.join(';\n'));
}

function bodyOf(client: ClientBase, mark: Mark): string {
	return `BEGIN
		IF coalesce(current_setting('mailctl.move', TRUE), '') <> ${literal(client, mark.id)} THEN
			RAISE EXCEPTION USING ERRCODE = 'MC001', MESSAGE = ${literal(client, `this database ${whyMarked(mark)}`)};
		END IF;
		RETURN NULL;
	END`;
}

function literal(client: ClientBase, text: string): string {
	return client.escapeLiteral(text);
}

async function setMark(sql: Sql, mark: Mark): Promise<void> {
	await sql.run(
		`INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)
		ON CONFLICT (version) DO UPDATE SET name = excluded.name, applied_at = excluded.applied_at`,
		markVersion,
		JSON.stringify(mark),
		mark.at,
	);
}

/** Those that a move copies, and that have rows. */
async function filledTables(sql: Sql): Promise<string[]> {
	const filled: string[] = [];
	for (const { name } of await tablesOf(sql)) {
		if (notMoved.has(name)) continue;
		if ((await sql.number(`SELECT EXISTS (SELECT 1 FROM "${name}")`)) === 1) filled.push(name);
	}
	return filled;
}

async function tablesOf(sql: Sql): Promise<Table[]> {
	const columns = await sql.all<{ table: string; name: string; type: string; key: number }>(
		`SELECT c.relname AS "table", a.attname AS name, format_type(a.atttypid, NULL) AS type,
			coalesce(array_position(i.indkey::smallint[], a.attnum) + 1, 0) AS key
		FROM pg_class c
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
		WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
		ORDER BY c.relname COLLATE "C", a.attname COLLATE "C"`,
	);
	const parents = await sql.all<{ child: string; parent: string }>(
		`SELECT conrelid::regclass::text AS child, confrelid::regclass::text AS parent
		FROM pg_constraint
		WHERE contype = 'f' AND connamespace = current_schema()::regnamespace`,
	);
	return [...new Set(columns.map(({ table }) => table))].map((name) => {
		const own = columns.filter(({ table }) => table === name);
		const key = own
			.map(({ key }, at) => ({ key, at }))
			.filter(({ key }) => key > 0)
			.sort((one, other) => one.key - other.key);
		return {
			name,
			columns: own.map((column) => ({ name: column.name, type: typeOf(column.type) })),
			key: key.map(({ at }) => at),
			parents: parents.filter(({ child }) => child === name).map(({ parent }) => parent),
		};
	});
}

function typeOf(type: string): Table['columns'][number]['type'] {
	if (type === 'bytea') return 'blob';
	return type === 'bigint' ? 'integer' : 'text';
}

function namesOf({ columns }: Table, places: readonly number[] = [...columns.keys()]): string {
	return places.map((at) => `"${columns[at]?.name}"`).join(', ');
}

/** Columns whose values the database gives, and the last one given. */
async function idsOf(sql: Sql): Promise<{ table: string; column: string; last: number }[]> {
	return await sql.all(
		`SELECT c.relname AS "table", a.attname AS "column",
			coalesce(pg_sequence_last_value(pg_get_serial_sequence(quote_ident(c.relname), a.attname)::regclass), 0) AS last
		FROM pg_class c
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attidentity <> '' AND NOT a.attisdropped
		WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
		ORDER BY 1`,
	);
}
