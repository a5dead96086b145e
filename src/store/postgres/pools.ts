/** Connections to the hosts of a URL: to the one that takes writes, wherever that is at the moment. */
import pg, { type ClientConfig, type Connection, type PoolClient } from 'pg';
import type { Place } from './place.js';

export interface Pools {
	/** Rejects as the driver does; `noPrimary` where hosts answer and none takes writes. */
	connect(): Promise<PoolClient>;
	configOf(client: PoolClient): ClientConfig;
	current(): ClientConfig;
	/** Connections that no one uses. */
	idle: ReadonlySet<PoolClient>;
	end(): Promise<void>;
}

const connectTimeoutMs = 10_000;

/** Ends what failed: the driver leaves a connection open whose login it cannot go on with, as without a password. */
class Client extends pg.Client {
	constructor(config?: ClientConfig) {
		super(config);
		// pg has no other way to it.
		const { connection } = this as unknown as { connection: Connection };
		connection.on('error', () => void connection.stream.destroy());
	}
}

/** Connects when it is first used. `size`: connections at most. */
export function createPools(place: Place, { size, role }: { size: number; role: string }): Pools {
	const idle = new Set<PoolClient>();
	const configs = new WeakMap<PoolClient, ClientConfig>();
	const hosts = place.urls.map((url) => {
		const config: ClientConfig = {
			connectionString: url,
			ssl: place.ssl,
			application_name: `mailctl ${role}`,
			connectionTimeoutMillis: connectTimeoutMs / place.urls.length,
			keepAlive: true,
			keepAliveInitialDelayMillis: 10_000,
		};
		const pool = new pg.Pool({
			...{ ...config, max: size, idleTimeoutMillis: 30_000 },
			allowExitOnIdle: true,
			Client,
		});
		// A connection that ends between two statements says so here: its next statement fails, or the next transaction
		// takes another one.
		pool.on('error', () => undefined);
		pool.on('connect', (client) => {
			client.on('error', () => undefined);
			configs.set(client, config);
		});
		pool.on('acquire', (client) => void idle.delete(client));
		pool.on('release', (_error, client) => void idle.add(client));
		pool.on('remove', (client) => void idle.delete(client));
		return { pool, config, writable: new WeakSet<PoolClient>() };
	});
	let last = 0;
	const connect = async (): Promise<PoolClient> => {
		let failure: unknown = null;
		for (let n = 0; n < hosts.length; n += 1) {
			const at = (last + n) % hosts.length;
			const { pool, writable } = hosts[at] as (typeof hosts)[number];
			try {
				const client = await pool.connect();
				if (!place.isPrimaryWanted || writable.has(client) || (await takesWrites(client))) {
					writable.add(client);
					last = at;
					return client;
				}
				client.release(true);
				failure = noPrimary(place.name);
			} catch (error) {
				failure ??= error;
			}
		}
		throw failure;
	};
	return {
		connect,
		configOf: (client) => configs.get(client) ?? {},
		current: () => hosts[last]?.config ?? {},
		idle,
		end: async () => {
			await Promise.all(hosts.map(({ pool }) => pool.end()));
		},
	};
}

/** A server that takes writes never ceases to without ending its connections. */
async function takesWrites(client: PoolClient): Promise<boolean> {
	const { rows } = await client.query<{ is_read_only: string }>('SHOW transaction_read_only').then(
		(answer) => answer,
		(error: unknown) => {
			client.release(true);
			throw error;
		},
	);
	return Object.values(rows[0] ?? {})[0] === 'off';
}

/** As a lost connection: one of them may be promoted in a moment. */
function noPrimary(name: string): Error {
	return Object.assign(new Error(`${name}: the hosts that answer are read-only replicas`), {
		code: 'ENOPRIMARY',
	});
}
