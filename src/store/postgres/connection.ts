/** Transactions on the PostgreSQL database that a URL names. */
import { setTimeout } from 'node:timers/promises';
import type { ClientConfig, PoolClient } from 'pg';
import { StoreError } from '../../api/errors.js';
import { type Core, createCore } from '../core/core.js';
import type { Sql } from '../core/sql.js';
import type { WrappingKey } from '../keys.js';
import { type Hold, projectAlone } from '../operations.js';
import {
	isLost,
	isReadOnly,
	isRefusedForNow,
	isUnreplicated,
	translateFailure,
	unreplicated,
} from './failures.js';
import { takeHolds } from './holds.js';
import { createSpaced, type Listening, listen, notifyText } from './listen.js';
import type { Receipt } from './outcomes.js';
import { createPipeline, type Pipeline } from './pipeline.js';
import type { Place } from './place.js';
import { createPools } from './pools.js';
import { createReusableReads } from './reusable-reads.js';
import { cancel, cutOff, watchSilence } from './silent-connections.js';
import { createSql } from './sql.js';

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
	 * In a transaction of its own, beside others whose holds allow it; it holds the project alone where it names none, or
	 * from the moment at which it asks for that (`Sql.alone`). Runs again what the server undid to let another one pass,
	 * and what lost its connection. Where the answer to its end was lost, its `receipt` tells what became of it; null: it
	 * may run again. Rejects with `StoreError`; "unreachable" says that it may be done.
	 */
	write<R>(operate: (session: Session) => Promise<R>, means?: Partial<Means>): Promise<R>;
	/** Tells other processes of the project that messages are ready; never rejects, and loses it where it fails. */
	notify(): void;
	/** Hears of it until it is stopped; null where the URL says so. */
	listen(onReady: () => void): Listening | null;
	close(): Promise<void>;
}

/** What a write has from its caller. */
export interface Means {
	holds: readonly Hold[];
	receipt: Receipt | null;
	habit: Habit | null;
	/** Aborted while the write waits or works, it is undone: rejects with `StoreError` stopped. Its end is waited for. */
	stop: AbortSignal | null;
}

/** Whether the last call asked for the project alone: the next one begins so, which saves it a beginning. */
export interface Habit {
	isAlone: boolean;
}

const listenTimeoutMs = 10_000;
const shards = 16;
const mostTries = 20;

interface OpenSession extends Session {
	pipeline: Pipeline;
	isUnreplicated: boolean;
	/** Others may write in the project beside its transaction. */
	isShared: boolean;
	/** Its operation asked for the project alone. */
	isAskedAlone: boolean;
}

/** The operation must begin again, holding the project alone. */
class NotAlone extends Error {}

/** The signal came before the end of the transaction was asked for: it is undone. */
class Stopped extends Error {
	constructor(cause: unknown) {
		super('stopped', { cause });
	}
}

/** Acts at the signal, until it is asked whether that has come; `end` throws where it has. */
function onceStopped(stop: AbortSignal | null, act: () => void) {
	let isHeard = false;
	const hear = () => {
		isHeard = true;
		act();
	};
	if (stop?.aborted) hear();
	else stop?.addEventListener('abort', hear, { once: true });
	const hasCome = () => {
		stop?.removeEventListener('abort', hear);
		return isHeard;
	};
	return {
		hasCome,
		end: () => {
			if (hasCome()) throw new Stopped(stop?.reason);
		},
	};
}

interface Transaction<R> {
	/** Null: it only reads. */
	holds: readonly Hold[] | null;
	operate: (session: Session) => Promise<R>;
	receipt: Receipt | null;
	habit: Habit | null;
	stop: AbortSignal | null;
	/** The answer to the end of an earlier try was lost. */
	fate: { isUnsure: boolean };
}

interface Tries {
	/** So far. */
	tries: number;
	/** Of `performance.now`. */
	deadline: number;
}

/** Connects when it is first used. */
export function openDatabase(options: DatabaseOptions): Database {
	const { place, keys, lockTimeoutMs, isTrial } = options;
	const pools = createPools(place, options);
	const rests = createReusableReads(pools);
	// Looked into twice within the time for which a write waits.
	const silenceMs = lockTimeoutMs / 4;
	let connections = Math.floor(Math.random() * shards);
	const sessions = new WeakMap<PoolClient, OpenSession>();
	const sessionOf = (client: PoolClient) => {
		const known = sessions.get(client);
		if (known !== undefined) return known;
		const pipeline = createPipeline(client);
		// The connections of one process take turns, so that up to sixteen share no shard; those of several rarely do.
		connections += 1;
		const alone = () => {
			session.isAskedAlone = true;
			if (session.isShared) throw new NotAlone();
		};
		const sql = createSql(pipeline, { keys, shard: connections % shards, alone });
		const core = createCore(sql, { isTrial });
		const session: OpenSession = {
			...{ sql, client, pipeline, core },
			...{ isUnreplicated: false, isShared: false, isAskedAlone: false },
		};
		client.on('notice', (warning) => {
			if (isUnreplicated(warning)) session.isUnreplicated = true;
		});
		sessions.set(client, session);
		return session;
	};
	// In each transaction: the connection may be another server's session the next time, behind a pooler.
	const beginRead = [
		'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
		`SET LOCAL search_path = "${place.schema}"`,
	];
	const set = (name: string, value: string | number) => `set_config('${name}', '${value}', TRUE)`;
	const settings = [
		set('search_path', `"${place.schema}"`),
		set('lock_timeout', lockTimeoutMs),
		// A machine that is gone holds up the others for less time than they wait.
		set('idle_in_transaction_session_timeout', Math.ceil(lockTimeoutMs / 2)),
	];
	// One statement costs the server less than four.
	const beginWrite = (holds: readonly Hold[]) => [
		// Each statement sees what was committed before it began: the first begins once it has its holds.
		'BEGIN ISOLATION LEVEL READ COMMITTED',
		`SELECT ${[...settings, ...takeHolds(place.schema, holds)].join(', ')}`,
	];

	let wasReached = false;
	const answerOf = async <R>(
		session: OpenSession,
		{ holds, operate, receipt, habit, fate }: Transaction<R>,
	) => {
		session.isShared = holds !== null && holds !== projectAlone;
		session.isAskedAlone = false;
		// In the round trip of the first question, which fails with them.
		for (const text of holds === null ? beginRead : beginWrite(holds))
			session.pipeline.ask(text).catch(() => undefined);
		const earlier = fate.isUnsure ? await receipt?.find(session.sql) : null;
		// Of the same operation.
		if (earlier) return earlier.answer as R;
		const answer = await operate(session);
		if (habit !== null) habit.isAlone = session.isAskedAlone;
		receipt?.put(session.sql, answer);
		return answer;
	};
	const attempt = async <R>(transaction: Transaction<R>) => {
		const { holds, receipt, stop, fate } = transaction;
		const { client, isReading } = await rests.connect();
		wasReached = true;
		const session = sessionOf(client);
		const { pipeline } = session;
		const stopWatching = watchSilence(
			{ client, pipeline },
			{ config: pools.configOf(client), silenceMs },
			() => {
				// The others were made before it fell silent, too.
				for (const one of [client, ...pools.idle]) cutOff(one);
			},
		);
		const release = (isBroken: boolean) => {
			stopWatching();
			client.release(isBroken);
		};
		let isEnding = false;
		const stopping = onceStopped(stop, () => void cancel(client, pools.configOf(client)));
		try {
			if (isReading) void isFailing(pipeline.ask('ROLLBACK'));
			const answer = await answerOf(session, transaction);
			stopping.end();
			isEnding = holds !== null && !isTrial;
			if (holds === null) {
				rests.rest({ client, end: () => isFailing(pipeline.ask('ROLLBACK')), stopWatching, release });
				return answer;
			}
			await pipeline.ask(isEnding ? 'COMMIT' : 'ROLLBACK');
			if (session.isUnreplicated) throw unreplicated();
			release(false);
			receipt?.settle();
			return answer;
		} catch (error) {
			const isStopped = stopping.hasCome();
			const isBroken = isLost(error) || (await isFailing(pipeline.ask('ROLLBACK')));
			// The end of its statement may still be on its way to the server.
			release(isBroken || isStopped || isReadOnly(error));
			if (isStopped) throw new Stopped(error);
			if (isEnding && isBroken) fate.isUnsure = true;
			throw error;
		}
	};

	/** The next try of what failed; throws where there is none. */
	const retry = async <R>(tried: Transaction<R>, error: unknown, { tries, deadline }: Tries) => {
		const alone = { ...tried, holds: projectAlone };
		const { isUnsure } = tried.fate;
		if (tried.stop?.aborted && !isUnsure)
			throw new StoreError('stopped', `${place.name}: the change is undone`, { cause: tried.stop.reason });
		if (error instanceof NotAlone) return alone;
		const mayPass = isRefusedForNow(error)
			? tries < mostTries
			: // A server that never answered is told at once.
				isLost(error) && wasReached && performance.now() < deadline;
		if (!mayPass) throw isUnsure ? uncertain(place.name, error) : translateFailure(error, place.name);
		await setTimeout(Math.random() * Math.min(1_000, 10 * 2 ** tries));
		// What may still be ending holds the project with others.
		return isUnsure ? alone : tried;
	};
	const transact = async <R>(asked: Omit<Transaction<R>, 'fate'>) => {
		let transaction: Transaction<R> = { ...asked, fate: { isUnsure: false } };
		const deadline = performance.now() + lockTimeoutMs;
		for (let tries = 1; ; tries += 1) {
			try {
				return await attempt(transaction);
			} catch (error) {
				transaction = await retry(transaction, error, { tries, deadline });
			}
		}
	};

	const notifying = createSpaced(async () => {
		const client = await pools.connect();
		const told = client.query(notifyText, [place.schema]);
		await told.finally(() => client.release());
	});
	return {
		notify: notifying.call,
		listen: (onReady) =>
			place.listen === 'off'
				? null
				: listen({ config: () => listenerOf(place, pools.current()), schema: place.schema }, onReady),
		read: (operate) => transact({ holds: null, operate, receipt: null, habit: null, stop: null }),
		write: (operate, { holds = projectAlone, receipt = null, habit = null, stop = null } = {}) =>
			transact({
				holds: habit?.isAlone ? projectAlone : holds,
				...{ operate, receipt, habit },
				// What begins after the signal belongs to the end.
				stop: stop?.aborted ? null : stop,
			}),
		close: async () => {
			await notifying.flush();
			await pools.end();
		},
	};
}

/** Where a process listens, if not where it works, and how long it waits there for any answer. */
function listenerOf({ listen: host }: Place, config: ClientConfig): ClientConfig {
	if (host === null) return { ...config, query_timeout: listenTimeoutMs };
	const direct = new URL(config.connectionString ?? '');
	direct.host = host;
	return { ...config, connectionString: direct.href, query_timeout: listenTimeoutMs };
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
