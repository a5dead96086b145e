/**
 * The two kinds of servers that speak PostgreSQL's protocol: PostgreSQL, and distributed databases (CockroachDB,
 * YugabyteDB), of which the second kind uses what all of them have. `?server=` of the URL says which one it is; all that
 * differs stands in one row of `servers`.
 */
import { StoreError } from '../../api/errors.js';
import type { Dialect, Sql } from '../core/sql.js';

export type ServerKind = 'postgresql' | 'distributed';

export interface Server {
	kind: ServerKind;
	/** What a transaction that only reads begins with, and one that writes. */
	begin: { read: string; write: string };
	/** Writes hold what they depend on (`holds.ts`). False: they are undone where they met, and run again. */
	hasHolds: boolean;
	/** False: messages of other processes are found by looking once a second. */
	hasListen: boolean;
	/** All migrations are one transaction. False: each text of `definitions` is one. */
	migratesAtOnce: boolean;
	/** A move shuts a database by triggers. */
	hasTriggers: boolean;
	/** Differences from the dialect of PostgreSQL. */
	dialect: Partial<Dialect>;
	/** A statement of the core for it. */
	statement(sql: string): string;
	/** A migration for it, in the texts that are carried out one by one. */
	definitions(sql: string): string[];
	/** Yields one row: what `doctor` tells of it. */
	facts: string;
}

const servers: Readonly<Record<ServerKind, Server>> = {
	postgresql: {
		kind: 'postgresql',
		begin: {
			read: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
			// Each statement sees what was committed before it began: the first begins once it has its holds.
			write: 'BEGIN ISOLATION LEVEL READ COMMITTED',
		},
		hasHolds: true,
		hasListen: true,
		migratesAtOnce: true,
		hasTriggers: true,
		dialect: {},
		statement: (sql) => sql,
		definitions: (sql) => [sql],
		facts: `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int / 10000 AS major,
			pg_database_size(current_database()) AS bytes,
			CASE WHEN pg_is_in_recovery() THEN 'on' ELSE current_setting('default_transaction_read_only') END AS read_only,
			current_setting('synchronous_commit') AS synchronous_commit,
			current_setting('synchronous_standby_names') AS standbys,
			(SELECT count(*) FROM pg_stat_replication) AS replicas,
			(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
			current_setting('max_connections')::int AS most,
			coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), FALSE) AS encrypted,
			floor(extract(epoch FROM clock_timestamp()) * 1000000) AS now`,
	},
	// CockroachDB lacks advisory locks that wait, LISTEN, triggers of statements, snapshots as text, in most versions the
	// sizes of tables, and takes few changes of a schema in one transaction. Its texts are compared by their octets without
	// a collation, and a division of integers yields fractions.
	distributed: {
		kind: 'distributed',
		begin: {
			read: 'BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY',
			write: 'BEGIN ISOLATION LEVEL SERIALIZABLE',
		},
		hasHolds: false,
		hasListen: false,
		migratesAtOnce: false,
		hasTriggers: false,
		dialect: {
			// Of several that want the same rows one waits early, in place of being undone late.
			lockRows: (table) => `FOR UPDATE OF ${table}`,
			skipLocked: 'FOR UPDATE',
			// Of a sequence others would take ids between those of one statement.
			newSubscriberId: {
				before: "UPDATE id_sequences SET last = last + 1 WHERE name = 'subscribers'",
				value: "(SELECT last FROM id_sequences WHERE name = 'subscribers')",
			},
			newSubscriberIds:
				"UPDATE id_sequences SET last = last + CAST(? AS BIGINT) WHERE name = 'subscribers' RETURNING last",
			isReadOnly: `SELECT CAST(current_setting('default_transaction_read_only') = 'on' AS INT)`,
			databaseSize: 'SELECT 0',
			tableSizes: "SELECT 'messages' AS name, 0 AS bytes WHERE FALSE",
			// Nothing tells whether data changed: each time it may have.
			seenState: 'SELECT CAST(gen_random_uuid() AS TEXT)',
		},
		statement: wholeQuotients,
		definitions: (sql) =>
			wholeQuotients(sql.replaceAll(' COLLATE "C"', ''))
				.split(/;\s*\n/)
				.map((text) => text.trim())
				.filter((text) => text !== '' && !ofSequence.test(text))
				.reduce<string[]>(joinNew, []),
		facts: `SELECT version() AS version, 0 AS major, 0 AS bytes,
			current_setting('default_transaction_read_only') AS read_only,
			'on' AS synchronous_commit, '' AS standbys, 0 AS replicas, 0 AS connections, 0 AS most, FALSE AS encrypted,
			floor(extract(epoch FROM clock_timestamp()) * 1000000) AS now`,
	},
};

export const { postgresql } = servers;

/** `at / 900000000`, `(quarter + ?) / 4`: integers on PostgreSQL. */
function wholeQuotients(sql: string): string {
	return sql.replace(/(?<![\w.])([\w.]{0,60}\([^()]{0,200}\)|[\w.]{1,60}) \/ (\d+)/g, 'div($1, $2)');
}

/** The change of the row of ids to a sequence; its table is made before all others. */
const ofSequence = /ADD GENERATED BY DEFAULT AS IDENTITY$|setval\(|^DROP TABLE id_sequences$/;

/** What only makes new tables and indexes goes together. */
function joinNew(texts: string[], text: string): string[] {
	const isNew = (one: string | undefined) => one?.startsWith('CREATE ') === true;
	const last = texts.at(-1);
	return isNew(text) && isNew(last) ? [...texts.slice(0, -1), `${last};\n${text}`] : [...texts, text];
}

/** Of the URL's parameter; null: PostgreSQL. Undefined: there is no such kind. */
export function serverOf(kind: string | null): Server | undefined {
	return Object.hasOwn(servers, kind ?? 'postgresql')
		? servers[(kind ?? 'postgresql') as ServerKind]
		: undefined;
}

/** In the round trip of another question. Throws `StoreError` where a distributed database is taken for PostgreSQL. */
export async function assertServer(sql: Sql, { kind }: Server, name: string): Promise<void> {
	const [row] = await sql.all<{ version: string }>('SELECT version() AS version');
	const [found] = /CockroachDB|-YB-/.exec(row?.version ?? '') ?? [];
	if (found === undefined || kind === 'distributed') return;
	const what = found === '-YB-' ? 'YugabyteDB' : found;
	throw new StoreError(
		'not_a_database',
		`${name} is ${what}, which lacks what PostgreSQL has: add ?server=distributed to the URL`,
	);
}

/** The tables of one kind are none for the other. Throws `StoreError`. */
export function assertKind(found: ServerKind, { kind }: Server, name: string): void {
	if (found === kind) return;
	const remedy = kind === 'distributed' ? 'take ?server=distributed out of' : 'add ?server=distributed to';
	throw new StoreError('not_a_database', `${name} was made for ${nameOf(found)}: ${remedy} the URL`);
}

function nameOf(kind: ServerKind): string {
	return kind === 'distributed' ? 'a distributed database' : 'PostgreSQL';
}
