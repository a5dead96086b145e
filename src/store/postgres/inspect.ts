import type { Clock, Micros } from '../../api/datetime.js';
import { DatabaseMissing } from '../errors.js';
import type { ServerFacts, WrappingKey } from '../maintenance.js';
import { carryOut, driverOf, type Reads } from '../operations.js';
import { shownDatabase } from '../url.js';
import { Database } from './connection.js';
import { readVersion, schemaVersion } from './migrations.js';
import { readPlace } from './place.js';

interface ServerInspection {
	schema: { found: number; known: number };
	reads: Reads;
	server: ServerFacts;
	close(): Promise<void>;
}

const facts = `SELECT current_setting('server_version') AS version,
	current_setting('server_version_num')::int / 10000 AS major,
	pg_database_size(current_database()) AS bytes,
	CASE WHEN pg_is_in_recovery() THEN 'on' ELSE current_setting('default_transaction_read_only') END = 'on' AS read_only,
	current_setting('synchronous_commit') AS "synchronousCommit",
	current_setting('synchronous_standby_names') AS standbys,
	(SELECT count(*) FROM pg_stat_replication) AS replicas,
	(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
	current_setting('max_connections')::int AS "mostConnections",
	coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), FALSE) AS encrypted,
	floor(extract(epoch FROM clock_timestamp()) * 1000000) AS now`;

type Facts = Omit<ServerFacts, 'isReadOnly' | 'isEncrypted' | 'ahead'>;

export async function inspectPostgres(
	url: string,
	{ keys, clock }: { keys: readonly WrappingKey[]; clock: Clock },
): Promise<ServerInspection> {
	const place = readPlace(url);
	const options = { place, keys, size: 2, role: 'doctor', lockTimeoutMs: 5_000, isTrial: true };
	const database = new Database(options);
	try {
		const found = await database.read(({ sql }) => readVersion(sql, place.name, { mayBeNewer: true }));
		if (found === 0) throw new DatabaseMissing(shownDatabase(url));
		const before = clock.now();
		const row = await database.read(({ sql }) =>
			sql.get<Facts & { read_only: number; encrypted: number; now: Micros }>(facts),
		);
		const after = clock.now();
		if (row === undefined) throw new Error('the server tells nothing of itself');
		const { read_only, encrypted, now, ...server } = row;
		return {
			schema: { found, known: schemaVersion },
			reads: driverOf('reads', (name, command) =>
				database.read(async ({ core }) => await carryOut(core, name, command)),
			),
			server: {
				...server,
				isReadOnly: read_only === 1,
				isEncrypted: encrypted === 1,
				ahead: now - (before + after) / 2,
			},
			close: () => database.close(),
		};
	} catch (error) {
		await database.close();
		throw error;
	}
}
