import pg, { type ClientConfig, type Connection, type PoolClient } from 'pg';
import type { Place } from './place.js';

const connectTimeoutMs = 10_000;
const listenTimeoutMs = 10_000;

/** The driver leaves a connection open whose login fails, as without a password. */
class Client extends pg.Client {
	constructor(config?: ClientConfig) {
		super(config);
		const { connection } = this as unknown as { connection: Connection };
		connection.on('error', () => void connection.stream.destroy());
	}
}

interface Host {
	pool: pg.Pool;
	config: ClientConfig;
	writable: WeakSet<PoolClient>;
}

export class Pools {
	readonly idle = new Set<PoolClient>();
	readonly #place: Place;
	readonly #configs = new WeakMap<PoolClient, ClientConfig>();
	readonly #hosts: readonly Host[];
	#last = 0;

	constructor(place: Place, { size, role }: { size: number; role: string }) {
		this.#place = place;
		this.#hosts = place.urls.map((url) => this.#hostAt(url, { size, role }));
	}

	async connect(): Promise<PoolClient> {
		let failure: unknown = null;
		for (let n = 0; n < this.#hosts.length; n += 1) {
			const at = (this.#last + n) % this.#hosts.length;
			const { pool, writable } = this.#hosts[at] as Host;
			try {
				const client = await pool.connect();
				if (!this.#place.isPrimaryWanted || writable.has(client) || (await takesWrites(client))) {
					writable.add(client);
					this.#last = at;
					return client;
				}
				client.release(true);
				const words = `${this.#place.name}: the hosts that answer are read-only replicas`;
				failure = Object.assign(new Error(words), { code: 'ENOPRIMARY' });
			} catch (error) {
				failure ??= error;
			}
		}
		throw failure;
	}

	configOf(client: PoolClient): ClientConfig {
		return this.#configs.get(client) ?? {};
	}

	listenerConfig(): ClientConfig {
		const config = { ...this.#hosts[this.#last]?.config, query_timeout: listenTimeoutMs };
		if (this.#place.listen === null) return config;
		const direct = new URL(config.connectionString ?? '');
		direct.host = this.#place.listen;
		return { ...config, connectionString: direct.href };
	}

	async end(): Promise<void> {
		await Promise.all(this.#hosts.map(({ pool }) => pool.end()));
	}

	#hostAt(url: string, { size, role }: { size: number; role: string }): Host {
		const config: ClientConfig = {
			connectionString: url,
			ssl: this.#place.ssl,
			application_name: `mailctl ${role}`,
			connectionTimeoutMillis: connectTimeoutMs / this.#place.urls.length,
			keepAlive: true,
			keepAliveInitialDelayMillis: 10_000,
		};
		const pool = new pg.Pool({
			...{ ...config, max: size, idleTimeoutMillis: 30_000 },
			allowExitOnIdle: true,
			Client,
		});
		pool.on('error', () => undefined);
		pool.on('connect', (client) => {
			client.on('error', () => undefined);
			this.#configs.set(client, config);
		});
		pool.on('acquire', (client) => void this.idle.delete(client));
		pool.on('release', (_error, client) => void this.idle.add(client));
		pool.on('remove', (client) => void this.idle.delete(client));
		return { pool, config, writable: new WeakSet<PoolClient>() };
	}
}

async function takesWrites(client: PoolClient): Promise<boolean> {
	try {
		const { rows } = await client.query<{ transaction_read_only: string }>('SHOW transaction_read_only');
		return rows[0]?.transaction_read_only === 'off';
	} catch (error) {
		client.release(true);
		throw error;
	}
}
