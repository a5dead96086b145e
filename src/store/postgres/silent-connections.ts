/**
 * Finds connections whose other end is gone without a word: a machine without power, a proxy that has forgotten them.
 * A long statement is as silent, so another connection asks the server what the silent one does.
 */
import pg, { type ClientConfig, type Connection, type PoolClient } from 'pg';
import { sqlState } from './failures.js';
import type { Pipeline } from './pipeline.js';

export interface SilenceOptions {
	config: ClientConfig;
	silenceMs: number;
}

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
	const error = Object.assign(new Error('the server does not answer any more'), { code: 'ETIMEDOUT' });
	// pg cannot end a connection without a word to a server that does not listen.
	(client as unknown as { connection: Connection }).connection.stream.destroy(error);
}

/**
 * Ends the statement of the connection, so its transaction fails. A pooler makes it end the connection
 * instead. Never rejects.
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
		// A refusal, as with max_connections, shows that the server is there.
		return sqlState(error) !== null;
	} finally {
		void probe.end().catch(() => undefined);
	}
}

function processOf(client: pg.ClientBase): number | null {
	const found: unknown = Reflect.get(client, 'processID');
	return typeof found === 'number' ? found : null;
}
