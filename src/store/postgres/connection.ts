import { createHash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import { StoreError } from '../../api/errors.js';
import { type Core, createCore } from '../core/core.js';
import type { Sql } from '../core/sql.js';
import type { WrappingKey } from '../maintenance.js';
import { type Hold, projectAlone } from '../operations.js';
import {
	isLost,
	isReadOnly,
	isRefusedForNow,
	isUnreplicated,
	translateFailure,
	unreplicated,
} from './failures.js';
import { type Listening, listen, notifyText, Spaced } from './listen.js';
import { createPipeline, type Pipeline } from './pipeline.js';
import type { Place } from './place.js';
import { cancel, cutOff, Pools, watchSilence } from './pools.js';
import type { Receipt } from './receipts.js';
import { createSql } from './sql.js';

interface DatabaseOptions {
	place: Place;
	size: number;
	role: string;
	keys: readonly WrappingKey[];
	lockTimeoutMs: number;
	isTrial: boolean;
	onWait?: (() => () => void) | undefined;
}

export interface Session {
	core: Core;
	sql: Sql;
	client: PoolClient;
}

interface Means {
	holds?: readonly Hold[];
	receipt?: Receipt | null;
	habit?: Habit | null;
	/** Aborting this signal undoes the write, which then rejects with `StoreError` "stopped". */
	stop?: AbortSignal | null;
}

/**
 * `isAlone`: the last write called `Sql.alone`. The next write then locks the whole project at its start, so that
 * `Sql.alone` need not restart it.
 */
export interface Habit {
	isAlone: boolean;
}

const shards = 16;
const mostTries = 20;
const shortMs = 100;

interface OpenSession extends Session {
	pipeline: Pipeline;
	isUnreplicated: boolean;
	isShared: boolean;
	isAskedAlone: boolean;
}

class NotAlone extends Error {}

interface Transaction<R> extends Required<Omit<Means, 'holds'>> {
	holds: readonly Hold[] | null;
	operate: (session: Session) => Promise<R>;
	isUnsure: boolean;
}

export class Database {
	readonly #options: DatabaseOptions;
	readonly #pools: Pools;
	readonly #sessions = new WeakMap<PoolClient, OpenSession>();
	readonly #notifying: Spaced;
	/** Each new connection of the process takes the next shard, so that up to 16 connections have different shards. */
	#connections = Math.floor(Math.random() * shards);
	#wasReached = false;

	constructor(options: DatabaseOptions) {
		this.#options = options;
		const { place } = options;
		this.#pools = new Pools(place, options);
		this.#notifying = new Spaced(async () => {
			const client = await this.#pools.connect();
			await client.query(notifyText, [place.schema]).finally(() => client.release());
		});
	}

	read<R>(operate: (session: Session) => Promise<R>): Promise<R> {
		const none = { holds: null, receipt: null, habit: null, stop: null };
		return this.#told(this.#transact({ ...none, operate, isUnsure: false }));
	}

	/**
	 * Locks the whole project if `holds` is absent or `operate` calls `Sql.alone`. Retries after a lost connection, a
	 * deadlock or a serialization failure. If COMMIT got no answer, the retry runs `operate` only if `receipt` finds no
	 * stored result. After `StoreError` "unreachable", the write may have been committed.
	 */
	write<R>(
		operate: (session: Session) => Promise<R>,
		{ holds = projectAlone, receipt = null, habit = null, stop = null }: Means = {},
	): Promise<R> {
		const transaction: Transaction<R> = {
			holds: habit?.isAlone ? projectAlone : holds,
			...{ operate, receipt, habit, isUnsure: false },
			// A write that begins after the abort belongs to the job's cleanup, so do not stop it.
			stop: stop?.aborted ? null : stop,
		};
		return this.#told(this.#transact(transaction));
	}

	notify(): void {
		this.#notifying.call();
	}

	listen(onReady: () => void): Listening | null {
		const { place } = this.#options;
		if (place.listen === 'off') return null;
		return listen({ config: () => this.#pools.listenerConfig(), schema: place.schema }, onReady);
	}

	async close(): Promise<void> {
		await this.#notifying.flush();
		await this.#pools.end();
	}

	async #told<R>(transaction: Promise<R>): Promise<R> {
		const { onWait } = this.#options;
		if (onWait === undefined) return await transaction;
		let end: (() => void) | null = null;
		const timer = globalThis
			.setTimeout(() => {
				end = onWait();
			}, shortMs)
			.unref();
		return await transaction.finally(() => {
			clearTimeout(timer);
			end?.();
		});
	}

	async #transact<R>(asked: Transaction<R>): Promise<R> {
		let transaction = asked;
		const deadline = performance.now() + this.#options.lockTimeoutMs;
		for (let tries = 1; ; tries += 1) {
			try {
				return await this.#attempt(transaction);
			} catch (error) {
				transaction = await this.#retry(transaction, error, { tries, deadline });
			}
		}
	}

	async #retry<R>(
		tried: Transaction<R>,
		error: unknown,
		{ tries, deadline }: { tries: number; deadline: number },
	): Promise<Transaction<R>> {
		const { name } = this.#options.place;
		const { isUnsure, stop } = tried;
		const alone = { ...tried, holds: projectAlone };
		if (stop?.aborted && !isUnsure)
			throw new StoreError('stopped', `${name}: the change was rolled back`, { cause: stop.reason });
		if (error instanceof NotAlone) return alone;
		const mayPass = isRefusedForNow(error)
			? tries < mostTries
			: // Do not retry if the server has never answered.
				isLost(error) && this.#wasReached && performance.now() < deadline;
		if (!mayPass && isUnsure)
			throw new StoreError(
				'unreachable',
				`${name}: the connection was lost during the commit; the change may or may not be saved`,
				{ cause: error },
			);
		if (!mayPass) throw translateFailure(error, name);
		await setTimeout(Math.random() * Math.min(1_000, 10 * 2 ** tries));
		// If COMMIT got no answer, the transaction may still be running. Locking the whole project waits for its end.
		return isUnsure ? alone : tried;
	}

	async #attempt<R>(transaction: Transaction<R>): Promise<R> {
		const { holds, receipt, stop } = transaction;
		const session = this.#sessionOf(await this.#pools.connect());
		this.#wasReached = true;
		const { client, pipeline } = session;
		const config = this.#pools.configOf(client);
		const silenceMs = this.#options.lockTimeoutMs / 4;
		const stopWatching = watchSilence({ client, pipeline }, { config, silenceMs }, () => {
			// The server has gone, so the idle connections are dead too.
			for (const one of [client, ...this.#pools.idle]) cutOff(one);
		});
		const release = (isBroken: boolean) => {
			stopWatching();
			client.release(isBroken);
		};
		let isStopped = false;
		const onStop = () => {
			isStopped = true;
			void cancel(client, config);
		};
		stop?.addEventListener('abort', onStop, { once: true });
		if (stop?.aborted) onStop();
		let isEnding = false;
		try {
			const answer = await this.#answer(session, transaction);
			stop?.removeEventListener('abort', onStop);
			stop?.throwIfAborted();
			isEnding = holds !== null && !this.#options.isTrial;
			if (holds === null) {
				// Do not wait for the answer: the connection's next BEGIN follows this ROLLBACK, often in the same packet.
				void isFailing(pipeline.ask('ROLLBACK'));
				release(false);
				return answer;
			}
			await pipeline.ask(isEnding ? 'COMMIT' : 'ROLLBACK');
			if (session.isUnreplicated) throw unreplicated();
			release(false);
			receipt?.settle();
			return answer;
		} catch (error) {
			stop?.removeEventListener('abort', onStop);
			const isBroken = isLost(error) || (await isFailing(pipeline.ask('ROLLBACK')));
			release(isBroken || isStopped || isReadOnly(error));
			if (isEnding && isBroken) transaction.isUnsure = true;
			throw error;
		}
	}

	async #answer<R>(
		session: OpenSession,
		{ holds, operate, receipt, habit, isUnsure }: Transaction<R>,
	): Promise<R> {
		session.isShared = holds !== null && holds !== projectAlone;
		session.isAskedAlone = false;
		for (const text of this.#beginning(holds)) session.pipeline.ask(text).catch(() => undefined);
		const earlier = isUnsure ? await receipt?.find(session.sql) : null;
		if (earlier) return earlier.answer as R;
		const answer = await operate(session);
		if (habit !== null) habit.isAlone = session.isAskedAlone;
		receipt?.put(session.sql, answer);
		return answer;
	}

	/** Each transaction sets its parameters again, because a pooler may give it another session. */
	#beginning(holds: readonly Hold[] | null): readonly string[] {
		const { place, lockTimeoutMs } = this.#options;
		if (holds === null)
			return ['BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', `SET LOCAL search_path = "${place.schema}"`];
		const set = (name: string, value: string | number) => `set_config('${name}', '${value}', TRUE)`;
		const settings = [
			set('search_path', `"${place.schema}"`),
			set('lock_timeout', lockTimeoutMs),
			// If a client's machine is lost, the server releases the client's locks before other transactions time out.
			set('idle_in_transaction_session_timeout', Math.ceil(lockTimeoutMs / 2)),
		];
		return [
			// Each statement sees all commits before its start. Statements that follow the locks thus see the writes of
			// earlier holders.
			'BEGIN ISOLATION LEVEL READ COMMITTED',
			// A single SELECT costs the server less than a statement for each setting and lock.
			`SELECT ${[...settings, ...takeHolds(place.schema, holds)].join(', ')}`,
		];
	}

	#sessionOf(client: PoolClient): OpenSession {
		const known = this.#sessions.get(client);
		if (known !== undefined) return known;
		const { keys, isTrial } = this.#options;
		const pipeline = createPipeline(client);
		this.#connections += 1;
		const alone = () => {
			session.isAskedAlone = true;
			if (session.isShared) throw new NotAlone();
		};
		const sql = createSql(pipeline, { keys, shard: this.#connections % shards, alone });
		const session: OpenSession = {
			...{ sql, client, pipeline, core: createCore(sql, { isTrial }) },
			...{ isUnreplicated: false, isShared: false, isAskedAlone: false },
		};
		client.on('notice', (warning) => {
			if (isUnreplicated(warning)) session.isUnreplicated = true;
		});
		this.#sessions.set(client, session);
		return session;
	}
}

function isFailing(question: Promise<unknown>): Promise<boolean> {
	return question.then(
		() => false,
		() => true,
	);
}

/** Transactions take locks in this order, so that they cannot deadlock. */
const levels: readonly Hold['level'][] = ['project', 'people', 'address', 'key', 'deliveries'];

const buckets = 64;

function bucketOf(text: string): number {
	return text === '' ? 0 : createHash('sha256').update(text).digest().readUInt16BE() % buckets;
}

function takeHolds(schema: string, holds: readonly Hold[]): readonly string[] {
	const each = new Map(
		holds
			.map(({ level, of, isAlone }) => ({ level, bucket: bucketOf(of), isAlone }))
			.sort(
				(one, other) => levels.indexOf(one.level) - levels.indexOf(other.level) || one.bucket - other.bucket,
			)
			.map((hold) => [`${hold.level} ${hold.bucket}`, hold]),
	);
	return [...each].map(([name, { isAlone }]) => {
		const take = isAlone ? 'pg_advisory_xact_lock' : 'pg_advisory_xact_lock_shared';
		return `${take}(hashtextextended('mailctl ${schema} ${name}', 0))`;
	});
}
