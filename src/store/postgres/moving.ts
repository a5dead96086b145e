import type { ClientBase } from 'pg';
import { microsPerSecond } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { countSecrets } from '../core/keys.js';
import { findFresh } from '../core/processes.js';
import { column, type Sql } from '../core/sql.js';
import {
	type Ask,
	type Found,
	filledOf,
	type Mark,
	type Movable,
	markVersion,
	namesOf,
	type Row,
	type Table,
	watcher,
	whyMarked,
} from '../moving.js';
import { projectTables } from '../sqlite/moving.js';
import { shownDatabase } from '../url.js';
import { Database, type Session } from './connection.js';
import { migrate, readMark, readVersion, schemaVersion } from './migrations.js';
import { readPlace } from './place.js';
import { arrayOf } from './sql.js';
import { serverClock } from './upkeep.js';

export class MovablePostgres implements Movable {
	readonly name: string;
	readonly schema = schemaVersion;
	readonly keepsNul = false;
	readonly tables = projectTables();
	readonly #schemaName: string;
	readonly #database: Database;
	#own: Mark | null = null;

	constructor(url: string) {
		const place = readPlace(url);
		this.name = shownDatabase(url);
		this.#schemaName = place.schema;
		this.#database = new Database({
			...{ place, size: 2, role: 'migrate', keys: [], lockTimeoutMs: 10_000, isTrial: false },
		});
	}

	readonly ask: Ask = (text, values = []) => this.#database.read(({ sql }) => sql.tuples<Row>(text, values));

	async look(): Promise<Found | null> {
		return await this.#database.read(({ sql }) => look(sql, this));
	}

	async begin(mark: Mark): Promise<void> {
		await this.#write(mark, async (session) => {
			const { sql, client } = session;
			if (this.#schemaName !== 'public')
				await client.query(`CREATE SCHEMA IF NOT EXISTS "${this.#schemaName}"`);
			if ((await readVersion(sql, this.name, { mayBeMarked: true })) === 0)
				await migrate(session, { name: this.name, now: mark.at });
			await shutTables(session, mark);
			await assertUnused(sql, this.name);
			const filled = await filledOf(askOf(sql), this.tables);
			if (filled.length > 0) throw this.#refused(`is not empty (${filled.join(', ')})`);
			await setMark(sql, mark);
		});
	}

	async goOn(mark: Mark): Promise<void> {
		this.#own = mark;
	}

	async shut(mark: Mark): Promise<void> {
		await this.#write(mark, async (session) => {
			await shutTables(session, mark);
			if (!mark.isOver) await assertUnused(session.sql, this.name);
			await setMark(session.sql, mark);
		});
	}

	async open(mark: Mark): Promise<void> {
		await this.#write(mark, async ({ sql, client }) => {
			const known = await readMark(sql);
			if (known === null) return;
			if (known.id !== mark.id) throw this.#refused('has another mark');
			await sql.run('DELETE FROM migrations WHERE version = ?', [markVersion]);
			await client.query('DROP FUNCTION mailctl_moved() CASCADE');
		});
	}

	async clear(mark: Mark): Promise<void> {
		await this.#write(mark, async ({ sql, client }) => {
			if ((await readVersion(sql, this.name, { mayBeMarked: true })) === 0) return;
			const known = await readMark(sql);
			if (known?.role !== 'copy' || known.id !== mark.id) return;
			const names = (await tableNames(sql)).map((name) => `"${name}"`);
			await client.query(`DROP TABLE ${names.join(', ')} CASCADE; DROP FUNCTION mailctl_moved()`);
		});
	}

	async write(table: Table, rows: readonly Row[]): Promise<void> {
		const types = { integer: 'BIGINT', text: 'TEXT', blob: 'BYTEA' } as const;
		const arrays = table.columns.map(({ type }) => `?::${types[type]}[]`);
		const text = `INSERT INTO "${table.name}" (${namesOf(table)}) OVERRIDING SYSTEM VALUE
			SELECT * FROM unnest(${arrays.join(', ')})
			ON CONFLICT DO NOTHING`;
		const values = table.columns.map(({ type }, at) => arrayOf(types[type], rows, at));
		await this.#database.write(async ({ sql }) => {
			await sql.together([() => this.#permit(sql), () => sql.run(text, values)]);
		});
	}

	async ids(): Promise<Map<string, number>> {
		const rows = await this.#database.read(({ sql }) => idsOf(sql));
		return new Map(rows.map(({ table, last }) => [table, last]));
	}

	async raiseIds(ids: ReadonlyMap<string, number>): Promise<void> {
		await this.#write(this.#own, async ({ sql }) => {
			for (const { table, column, last } of await idsOf(sql)) {
				const highest = await sql.number(`SELECT coalesce(max("${column}"), 0) FROM "${table}"`);
				const goal = Math.max(highest, ids.get(table) ?? 0);
				if (goal > last)
					await sql.run('SELECT setval(pg_get_serial_sequence(?, ?), ?)', [`"${table}"`, column, goal]);
			}
		});
	}

	async settle(): Promise<void> {
		for (const { name } of this.tables)
			await this.#write(this.#own, ({ sql }) => sql.run(`ANALYZE "${name}"`));
	}

	async close(): Promise<void> {
		await this.#database.close();
	}

	async #write<T>(own: Mark | null, operate: (session: Session) => Promise<T>): Promise<T> {
		this.#own = own;
		return await this.#database.write(async (session) => {
			await this.#permit(session.sql);
			return await operate(session);
		});
	}

	#permit(sql: Sql) {
		return sql.run(`SELECT set_config('mailctl.move', ?, TRUE)`, [this.#own?.id ?? '']);
	}

	#refused(why: string): StoreError {
		return new StoreError('not_a_database', `${this.name} ${why}`);
	}
}

async function look(sql: Sql, { name, tables }: Movable): Promise<Found | null> {
	const found = await readVersion(sql, name, { mayBeMarked: true, mayBeNewer: true });
	if (found === 0) return null;
	const [identity] = await sql.tuples<[string]>(
		`SELECT concat(pg_postmaster_start_time(), ' ', oid, ' ', current_schema())
		FROM pg_database WHERE datname = current_database()`,
	);
	const known = { identity: identity?.[0] ?? '', schema: found, mark: await readMark(sql) };
	if (found !== schemaVersion) return { ...known, usedBy: [], filled: [], keys: [] };
	const others = await findFresh(sql, watcher, await sql.number(serverClock));
	return {
		...known,
		usedBy: others.map(({ host, pid, role }) => ({ host, pid, role })),
		filled: await filledOf(askOf(sql), tables),
		keys: [...(await countSecrets(sql)).keys()].filter((key) => key !== null),
	};
}

/** The leases of a killed process may outlive its heartbeat, so check both. */
async function assertUnused(sql: Sql, name: string): Promise<void> {
	const now = await sql.number(serverClock);
	const refuse = (why: string) =>
		new StoreError('busy_elsewhere', `${name} is in use, and nothing was changed: ${why}`);
	const [other] = await findFresh(sql, watcher, now);
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

/** After COMMIT, the server refuses all writes except those of the move. */
async function shutTables({ sql, client }: Session, mark: Mark): Promise<void> {
	const isShut = await sql.number(`SELECT to_regproc('mailctl_moved') IS NOT NULL`);
	await client.query(`CREATE OR REPLACE FUNCTION mailctl_moved() RETURNS trigger LANGUAGE plpgsql
		AS ${literal(client, bodyOf(client, mark))}`);
	if (isShut === 1) return;
	const triggers = (await tableNames(sql)).map(
		(name) => `CREATE TRIGGER mailctl_moved BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON "${name}"
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
		[markVersion, JSON.stringify(mark), mark.at],
	);
}

function askOf(sql: Sql): Ask {
	return (text, values = []) => sql.tuples<Row>(text, values);
}

function tableNames(sql: Sql): Promise<string[]> {
	return column<string>(
		sql,
		'SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1',
	);
}

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
