/**
 * Brings a database to this version's schema, or throws the reason. A version has one meaning on both
 * databases, or is of one alone (`test/store/postgres/schema.test.ts` compares the tables). Migrations are numbered, additive and never edited.
 */
import type { Micros } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import type { Sql } from '../core/sql.js';
import { oldestPostgres } from '../maintenance.js';
import { DatabaseMarked, type Mark, markVersion, parseMark } from '../moving.js';
import type { Session } from './connection.js';
import { first } from './migrations/0020-first.js';
import { processes } from './migrations/0021-processes.js';
import { counted } from './migrations/0022-counted.js';
import { listCounters } from './migrations/0023-list-counters.js';
import { counters } from './migrations/0024-counters.js';
import { waitingStates } from './migrations/0026-waiting-states.js';
import { retention } from './migrations/0027-retention.js';
import { deletedStates } from './migrations/0028-deleted-states.js';
import { emailOnce } from './migrations/0029-email-once.js';
import { bouncedFigures } from './migrations/0030-bounced-figures.js';
import { statesOfCampaigns } from './migrations/0031-states-of-campaigns.js';
import { deletedJoined } from './migrations/0032-deleted-joined.js';
import { leftOutOfCalls } from './migrations/0033-left-out-of-calls.js';
import { tracking } from './migrations/0034-tracking.js';
import { senderNames } from './migrations/0035-sender-names.js';
import { attachmentOwners } from './migrations/0036-attachment-owners.js';
import { provenTime } from './migrations/0037-proven-time.js';
import type { Place } from './place.js';

export interface Migration {
	readonly version: number;
	readonly name: string;
	readonly sql: string;
}

/** In their order. */
export const migrations: readonly Migration[] = [
	first,
	processes,
	counted,
	listCounters,
	counters,
	waitingStates,
	retention,
	deletedStates,
	emailOnce,
	bouncedFigures,
	statesOfCampaigns,
	deletedJoined,
	leftOutOfCalls,
	tracking,
	senderNames,
	attachmentOwners,
	provenTime,
];

/** The schema this version reads and writes. */
export const schemaVersion: number = Math.max(...migrations.map(({ version }) => version));

const ownTable = `CREATE TABLE IF NOT EXISTS migrations (
		version BIGINT PRIMARY KEY, name TEXT COLLATE "C" NOT NULL, applied_at BIGINT NOT NULL
	)`;
const ownRow = 'INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)';

/** In the transaction of the caller, who holds the project. Throws `StoreError` "newer_schema" and "not_a_database". */
export async function migrate(
	{ sql, client }: Session,
	{ name: database, now }: Pick<Place, 'name'> & { now: Micros },
): Promise<void> {
	const from = await readVersion(sql, database);
	if (from === schemaVersion) return;
	if (from === 0) await assertEmpty(sql, database);
	await sql.run(ownTable);
	for (const { version, name, sql: text } of migrations.filter(({ version }) => version > from)) {
		await client.query(text);
		await sql.run(ownRow, version, name, now);
	}
}

/**
 * Zero: nothing of ours is there. Throws `StoreError` "not_a_database" where the server is too old, and
 * "newer_schema", unless either may be of another version (`mayBeNewer`); and "moved", unless it may have a mark.
 */
export async function readVersion(
	sql: Sql,
	name: string,
	{ mayBeNewer = false, mayBeMarked = false }: { mayBeNewer?: boolean; mayBeMarked?: boolean } = {},
): Promise<number> {
	// Many programs have a table of migrations; this one is ours alone.
	const [row] = await sql.tuples<[isOurs: number, runs: number]>(
		`SELECT ${isTable('message_firsts')}, current_setting('server_version_num')::int`,
	);
	const [isOurs = 0, runs = 0] = row ?? [];
	const major = Math.floor(runs / 10_000);
	if (major < oldestPostgres && !mayBeNewer)
		throw new StoreError(
			'not_a_database',
			`${name} runs version ${major} of PostgreSQL; mailctl needs ${oldestPostgres} or newer: upgrade the server`,
		);
	if (isOurs === 0) return 0;
	const last = await sql.number('SELECT max(version) FROM migrations');
	const mark = last === markVersion ? await readMark(sql) : null;
	if (mark !== null && !mayBeMarked) throw new DatabaseMarked(name, mark);
	const version =
		mark === null
			? last
			: await sql.number('SELECT max(version) FROM migrations WHERE version < ?', markVersion);
	if (version <= schemaVersion || mayBeNewer) return version;
	throw new StoreError(
		'newer_schema',
		`${name} was written by a newer mailctl (schema ${version}, this one knows ${schemaVersion}); upgrade mailctl`,
	);
}

/** Not to_regclass(): a session that has waited for a lock answers that from its cache, without a table made meanwhile. */
function isTable(name: string): string {
	return `EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = '${name}')`;
}

/** Null: no move has marked it. It has our tables. */
export async function readMark(sql: Sql): Promise<Mark | null> {
	const row = await sql.get<{ name: string }>('SELECT name FROM migrations WHERE version = ?', markVersion);
	return row === undefined ? null : parseMark(row.name);
}

/** Throws `StoreError` "not_a_database" where another program keeps tables of the same names. */
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
		`${name} has tables of another program (${tables}); name an empty database, or a schema of its own by ?schema=NAME`,
	);
}
