/** Connections to the PostgreSQL database that a URL names, and the transactions on them. */
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import type { ConnectionOptions } from 'node:tls';
import pg, { type ClientConfig, type PoolClient } from 'pg';
import { StoreError } from '../../api/errors.js';
import { canParseUrl } from '../../api/schema/url.js';
import { type Core, createCore } from '../core/core.js';
import type { Sql } from '../core/sql.js';
import type { WrappingKey } from '../keys.js';
import { isLost, isRefusedForNow, translateFailure } from './failures.js';
import { createSpaced, type Listening, listen, notifyText } from './listen.js';
import type { Receipt } from './outcomes.js';
import { createPipeline, type Pipeline } from './pipeline.js';
import { createSql } from './sql.js';
import { cutOff, watchSilence } from './watch.js';

/** A URL, read: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME&pool=4&sslmode=…`. */
export interface Place {
	/** For people: host, database and schema, never the password. */
	name: string;
	/** A project is a schema of the database. */
	schema: string;
	/** Null: the number that fits the role. */
	pool: number | null;
	/** HOST:PORT where it is heard that messages are ready: past a pooler. Null: the place itself; `off`: nowhere. */
	listen: string | null;
	/** What is left for the driver. */
	url: string;
	ssl: boolean | ConnectionOptions;
}

/** Throws `StoreError` "not_a_database" for a URL that names none. */
export function readPlace(text: string): Place {
	const refuse = (why: string) => new StoreError('not_a_database', `the database URL ${why}`);
	if (!canParseUrl(text) || /%(?![\da-f]{2})/i.test(text))
		throw refuse('cannot be read: postgres://USER:PASSWORD@HOST:5432/DATABASE, special characters as %XX');
	const url = new URL(text);
	const schema = url.searchParams.get('schema') ?? 'public';
	const pool = url.searchParams.get('pool');
	if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema))
		throw refuse(`names a schema that is none: ${JSON.stringify(schema)} (a-z, 0-9 and _)`);
	if (pool !== null && !/^[1-9]\d{0,2}$/.test(pool))
		throw refuse('has a ?pool= that is no number from 1 to 999');
	const listen = url.searchParams.get('listen');
	if (listen !== null && listen !== 'off' && !/^(\[[\da-f:.]+\]|[^\s/@:?#[\]]+)(:\d{1,5})?$/i.test(listen))
		throw refuse('has a ?listen= that is neither off nor HOST:PORT');
	const ssl = tlsOf(url.searchParams, refuse);
	for (const own of ['schema', 'pool', 'listen', 'sslmode', 'sslrootcert']) url.searchParams.delete(own);
	const host = url.host === '' ? (url.searchParams.get('host') ?? 'localhost') : url.host;
	const database = decodeURIComponent(url.pathname.slice(1));
	const name = `PostgreSQL at ${host}${database === '' ? '' : `, database ${database}`}`;
	return {
		name: schema === 'public' ? name : `${name}, schema ${schema}`,
		schema,
		pool: pool === null ? null : Number(pool),
		listen,
		url: url.href,
		ssl,
	};
}

/** `sslmode` and `sslrootcert` as libpq means them (PostgreSQL, 34.19); without a mode, no TLS. */
function tlsOf(params: URLSearchParams, refuse: (why: string) => StoreError): Place['ssl'] {
	const mode = params.get('sslmode') ?? 'disable';
	const file = params.get('sslrootcert');
	const ca = file === null ? {} : { ca: readAuthority(file, refuse) };
	if (mode === 'disable') return false;
	if (mode === 'require') return { ...ca, rejectUnauthorized: false };
	if (mode === 'verify-ca') return { ...ca, checkServerIdentity: () => undefined };
	if (mode === 'verify-full') return ca;
	throw refuse(`has ?sslmode=${mode}; it is disable, require, verify-ca or verify-full`);
}

function readAuthority(file: string, refuse: (why: string) => StoreError): string {
	try {
		return readFileSync(file, 'utf8');
	} catch (error) {
		throw refuse(`names ?sslrootcert=${file}: ${error instanceof Error ? error.message : error}`);
	}
}

export interface DatabaseOptions {
	place: Place;
	/** Connections at most. */
	size: number;
	/** Others see it in pg_stat_activity. */
	role: string;
	keys: readonly WrappingKey[];
	/** How long a transaction waits for others, and how long a lost connection is tried again, in milliseconds. */
	lockTimeoutMs: number;
	/** Every write is undone after its answer. */
	isTrial: boolean;
}

/** A core and the connection on which it works, for one transaction. */
export interface Session {
	core: Core;
	sql: Sql;
	/** For texts of several statements, once `sql` has had an answer. */
	client: PoolClient;
}

export interface Database {
	/** In a snapshot: its statements see one state. */
	read<R>(operate: (session: Session) => Promise<R>): Promise<R>;
	/**
	 * In a transaction of its own, one after the other in the whole project. Runs again what the server undid to let
	 * another one pass, and what lost its connection. Where the answer to its end was lost, its `receipt` tells what became
	 * of it; null: it may run again. Rejects with `StoreError`; "unreachable" says that it may be done.
	 */
	write<R>(operate: (session: Session) => Promise<R>, receipt?: Receipt | null): Promise<R>;
	/** Tells other processes of the project that messages are ready; never rejects, and loses it where it fails. */
	notify(): void;
	/** Hears of it until it is stopped; null where the URL says so. */
	listen(onReady: () => void): Listening | null;
	close(): Promise<void>;
}

const connectTimeoutMs = 10_000;
/** Of a transaction that the server undid. */
const mostTries = 20;

interface Transaction<R> {
	begin: readonly string[];
	end: 'COMMIT' | 'ROLLBACK';
	operate: (session: Session) => Promise<R>;
	receipt: Receipt | null;
	/** The answer to the end of an earlier try was lost. */
	fate: { isUnsure: boolean };
}

/** Connects when it is first used. */
export function openDatabase(options: DatabaseOptions): Database {
	const { place, keys, lockTimeoutMs, isTrial } = options;
	const config: ClientConfig = {
		connectionString: place.url,
		ssl: place.ssl,
		application_name: `mailctl ${options.role}`,
		connectionTimeoutMillis: connectTimeoutMs,
		keepAlive: true,
		keepAliveInitialDelayMillis: 10_000,
	};
	// Looked into twice within the time for which a write waits.
	const silence = { config, silenceMs: lockTimeoutMs / 4 };
	const pool = new pg.Pool({
		...{ ...config, max: options.size, idleTimeoutMillis: 30_000 },
		allowExitOnIdle: true,
	});
	// A connection that ends between two statements says so here: its next statement fails, or the next transaction takes
	// another one.
	pool.on('error', () => undefined);
	const idle = new Set<PoolClient>();
	pool.on('connect', (client) => void client.on('error', () => undefined));
	pool.on('acquire', (client) => void idle.delete(client));
	pool.on('release', (_error, client) => void idle.add(client));
	pool.on('remove', (client) => void idle.delete(client));
	const sessions = new WeakMap<PoolClient, Session & { pipeline: Pipeline }>();
	const sessionOf = (client: PoolClient) => {
		const known = sessions.get(client);
		if (known !== undefined) return known;
		const pipeline = createPipeline(client);
		const sql = createSql(pipeline, keys);
		const session = { sql, client, pipeline, core: createCore(sql, { isTrial }) };
		sessions.set(client, session);
		return session;
	};
	// In each transaction: the connection may be another server's session the next time, behind a pooler.
	const here = `SET LOCAL search_path = ${place.schema}`;
	const beginRead = ['BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', here];
	const beginWrite = [
		'BEGIN',
		here,
		`SET LOCAL lock_timeout = ${lockTimeoutMs}`,
		// A machine that is gone holds up the others for less time than they wait.
		`SET LOCAL idle_in_transaction_session_timeout = ${lockTimeoutMs / 2}`,
		`SELECT pg_advisory_xact_lock(hashtextextended('mailctl ${place.schema}', 0))`,
	];

	let wasReached = false;
	const attempt = async <R>({ begin, end, operate, receipt, fate }: Transaction<R>) => {
		const client = await pool.connect();
		wasReached = true;
		const session = sessionOf(client);
		const { pipeline } = session;
		const stopWatching = watchSilence({ client, pipeline }, silence, () => {
			// The others were made before it fell silent, too.
			for (const one of [client, ...idle]) cutOff(one);
		});
		let isEnding = false;
		try {
			// In the round trip of the first question, which fails with them.
			for (const text of begin) pipeline.ask(text).catch(() => undefined);
			const earlier = fate.isUnsure ? await receipt?.find(session.sql) : null;
			// Of the same operation.
			const answer = earlier ? (earlier.answer as R) : await operate(session);
			isEnding = end === 'COMMIT';
			if (!earlier) receipt?.put(session.sql, answer);
			await pipeline.ask(end);
			client.release();
			receipt?.settle();
			return answer;
		} catch (error) {
			const isBroken = isLost(error) || (await isFailing(pipeline.ask('ROLLBACK')));
			client.release(isBroken);
			if (isEnding && isBroken) fate.isUnsure = true;
			throw error;
		} finally {
			stopWatching();
		}
	};

	const transact = async <R>(transaction: Omit<Transaction<R>, 'fate'>) => {
		const fate = { isUnsure: false };
		const deadline = performance.now() + lockTimeoutMs;
		for (let tries = 1; ; tries += 1) {
			try {
				return await attempt({ ...transaction, fate });
			} catch (error) {
				// A server that never answered is told at once.
				const mayPass = isRefusedForNow(error)
					? tries < mostTries
					: isLost(error) && wasReached && performance.now() < deadline;
				if (!mayPass)
					throw fate.isUnsure ? uncertain(place.name, error) : translateFailure(error, place.name);
				await setTimeout(Math.random() * Math.min(1_000, 10 * 2 ** tries));
			}
		}
	};

	const notifying = createSpaced(async () => {
		await pool.query(notifyText, [place.schema]);
	});
	return {
		notify: notifying.call,
		listen: (onReady) =>
			place.listen === 'off'
				? null
				: listen({ config: { ...config, ...listenerOf(place) }, schema: place.schema }, onReady),
		read: (operate) => transact({ begin: beginRead, end: 'ROLLBACK', operate, receipt: null }),
		write: (operate, receipt = null) =>
			transact({ begin: beginWrite, end: isTrial ? 'ROLLBACK' : 'COMMIT', operate, receipt }),
		close: async () => {
			await notifying.flush();
			await pool.end();
		},
	};
}

/** Where a process listens, if not at the place itself, and how long it waits there for any answer. */
function listenerOf({ url, listen: host }: Place): ClientConfig {
	if (host === null) return { query_timeout: connectTimeoutMs };
	const direct = new URL(url);
	direct.host = host;
	return { connectionString: direct.href, query_timeout: connectTimeoutMs };
}

function isFailing(question: Promise<unknown>): Promise<boolean> {
	return question.then(
		() => false,
		() => true,
	);
}

/** The server has not answered COMMIT. */
function uncertain(name: string, cause: unknown): StoreError {
	return new StoreError(
		'unreachable',
		`${name}: the connection was lost while it ended a transaction; it may be done or not`,
		{ cause },
	);
}
