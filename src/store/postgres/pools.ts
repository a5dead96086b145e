import pg, { type ClientConfig, type Connection, type PoolClient } from 'pg';
import { sqlState } from './failures.js';
import type { Pipeline } from './pipeline.js';
import type { Place } from './place.js';

const connectTimeoutMs = 10_000;
const listenTimeoutMs = 10_000;

/** The driver leaves the connection open after a failed login, so this class closes it. */
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

interface SilenceOptions {
	config: ClientConfig;
	silenceMs: number;
}

/**
 * Calls `onGone` if the server vanished silently: its machine lost power, or a proxy dropped the connection. The server
 * is also silent during a long statement, so a second connection asks whether the statement still runs.
 */
export function watchSilence(
	{ client, pipeline }: { client: PoolClient; pipeline: Pipeline },
	{ config, silenceMs }: SilenceOptions,
	onGone: () => void,
): () => void {
	let silent: number | null = null;
	let isLooking = false;
	const look = async () => {
		const trip = pipeline.underWay;
		const isSilent = trip !== null && trip === silent;
		silent = trip;
		if (!isSilent || isLooking) return;
		isLooking = true;
		const isGone = !(await isServed(client, { ...config, ...timeouts(silenceMs) }));
		isLooking = false;
		if (isGone && pipeline.underWay === trip) onGone();
	};
	const timer = setInterval(() => void look(), silenceMs).unref();
	return () => clearInterval(timer);
}

export function cutOff(client: PoolClient): void {
	const error = Object.assign(new Error('the server stopped answering'), { code: 'ETIMEDOUT' });
	// Destroy the socket, because pg's end() only sends a message, which a dead server never reads.
	(client as unknown as { connection: Connection }).connection.stream.destroy(error);
}

/**
 * Cancels the running statement, so that its transaction fails. If the cancel fails, destroys the connection. Never
 * rejects.
 */
export async function cancel(client: PoolClient, config: ClientConfig): Promise<void> {
	const other = new pg.Client({ ...config, ...timeouts(cancelMs) });
	other.on('error', () => undefined);
	try {
		await other.connect();
		const { rows } = await other.query<{ is_told: boolean }>(
			'SELECT pg_backend_pid() = $1 AND pg_cancel_backend($2) AS is_told',
			[processOf(other), processOf(client)],
		);
		if (rows[0]?.is_told !== true) cutOff(client);
	} catch {
		cutOff(client);
	} finally {
		void other.end().catch(() => undefined);
	}
}

const cancelMs = 2_000;

function timeouts(ms: number): ClientConfig {
	return { connectionTimeoutMillis: ms, query_timeout: ms, application_name: 'mailctl watch' };
}

async function isServed(client: PoolClient, config: ClientConfig): Promise<boolean> {
	const probe = new pg.Client(config);
	probe.on('error', () => undefined);
	try {
		await probe.connect();
		const { rows } = await probe.query<{ pid: number; state: string | null }>(
			`SELECT pg_backend_pid() AS pid, (SELECT state FROM pg_stat_activity WHERE pid = $1) AS state`,
			[processOf(client)],
		);
		const isDirect = rows[0]?.pid === processOf(probe);
		return !isDirect || rows[0]?.state === 'active';
	} catch (error) {
		// A refusal, for example by max_connections, shows that the server is up.
		return sqlState(error) !== null;
	} finally {
		void probe.end().catch(() => undefined);
	}
}

function processOf(client: pg.ClientBase): number | null {
	const found: unknown = Reflect.get(client, 'processID');
	return typeof found === 'number' ? found : null;
}
