/** `test/store/postgres/schema.long.test.ts` compares this schema's tables with SQLite's. */
import type { Micros } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import type { Sql } from '../core/sql.js';
import { oldestPostgres } from '../maintenance.js';
import { type Migration, newerSchema, versionOf } from '../migrations.js';
import { DatabaseMarked, type Mark, markVersion, parseMark } from '../moving.js';
import type { Session } from './connection.js';
import type { Place } from './place.js';
import schema from './schema.postgres.sql';

export const migrations: readonly Migration[] = [{ version: 1, name: 'schema', sql: schema }];

export const schemaVersion: number = versionOf(migrations);

export async function migrate(
	{ sql, client }: Session,
	{ name: database, now }: Pick<Place, 'name'> & { now: Micros },
	all: readonly Migration[] = migrations,
): Promise<void> {
	const from = await readVersion(sql, database);
	if (from === 0) await assertEmpty(sql, database);
	for (const { version, name, sql: text } of all.filter(({ version }) => version > from)) {
		await client.query(text);
		await sql.run('INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)', [
			version,
			name,
			now,
		]);
	}
}

/**
 * Returns 0 if mailctl's tables are missing. Unless `mayBeMarked`, throws `StoreError` "moved" for a marked database.
 * Unless `mayBeNewer`, throws "not_a_database" for a server that is too old, and "newer_schema" for a newer schema.
 */
export async function readVersion(
	sql: Sql,
	name: string,
	{ mayBeNewer = false, mayBeMarked = false }: { mayBeNewer?: boolean; mayBeMarked?: boolean } = {},
): Promise<number> {
	// Many programs have a table named "migrations", so look for a table that only mailctl has.
	const [row] = await sql.tuples<[isOurs: number, runs: number]>(
		`SELECT ${isTable('message_firsts')}, current_setting('server_version_num')::int`,
	);
	const [isOurs = 0, runs = 0] = row ?? [];
	const major = Math.floor(runs / 10_000);
	if (major < oldestPostgres && !mayBeNewer)
		throw new StoreError(
			'not_a_database',
			`${name} runs PostgreSQL ${major}, but mailctl needs ${oldestPostgres} or newer: upgrade the server`,
		);
	if (isOurs === 0) return 0;
	const last = await sql.number('SELECT max(version) FROM migrations');
	const mark = last === markVersion ? await readMark(sql) : null;
	if (mark !== null && !mayBeMarked) throw new DatabaseMarked(name, mark);
	const version =
		mark === null
			? last
			: await sql.number('SELECT max(version) FROM migrations WHERE version < ?', [markVersion]);
	if (version <= schemaVersion || mayBeNewer) return version;
	throw newerSchema(name, version, schemaVersion);
}

/** Avoids to_regclass(): after a wait for a lock, it reads the session's old cache and misses new tables. */
function isTable(name: string): string {
	return `EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = '${name}')`;
}

export async function readMark(sql: Sql): Promise<Mark | null> {
	const row = await sql.get<{ name: string }>('SELECT name FROM migrations WHERE version = ?', [markVersion]);
	return row === undefined ? null : parseMark(row.name);
}

async function assertEmpty(sql: Sql, name: string): Promise<void> {
	const rows = await sql.all<{ name: string }>(
		`SELECT table_name AS name FROM information_schema.tables
		WHERE table_schema = current_schema() AND table_name IN ('migrations', 'lists', 'subscribers', 'messages', 'settings')
		ORDER BY 1`,
	);
	if (rows.length === 0) return;
	const tables = rows.map((row) => row.name).join(', ');
	throw new StoreError(
		'not_a_database',
		`${name} has tables of another program (${tables}); use an empty database, or a separate schema with ?schema=NAME`,
	);
}
