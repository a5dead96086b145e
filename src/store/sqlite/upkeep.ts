/** What a process that stays does beside its commits: copies the log back, and deletes what is kept for a time only. */
import type Database from 'better-sqlite3';
import { type Clock, type Micros, microsPerDay } from '../../api/datetime.js';
import { dropDeliveries } from './drop-deliveries.js';
import { sqliteCode } from './failures.js';
import type { Sql } from './sql.js';
import type { Writer } from './writer.js';

export interface Upkeep {
	/** Nothing is begun any more. */
	stop(): void;
}

export interface UpkeepOptions {
	db: Database.Database;
	sql: Sql;
	writer: Writer;
	clock: Clock;
	everyMs: number;
}

/** 8 MiB: copied back in the time of a few commits; a longer log makes every read of a page look further. */
const mostPages = 1_000;
/** What heartbeats alone write is not worth two waits for the disk. */
const fewPages = 100;
/** Rows a transaction deletes at most, so that nobody waits for it. */
const sliceSize = 1_000;
const deleteEveryMicros: Micros = microsPerDay / 24;

/** Works once every `everyMs`; whatever fails is tried again the next time. Does not keep the process alive. */
export function startUpkeep(options: UpkeepOptions): Upkeep {
	const { db, sql, writer, clock, everyMs } = options;
	let logged = 0;
	let deletedAt = 0;
	let isDeleting = false;
	const tick = () => {
		logged = tendLog(db, logged);
		const now = clock.now();
		if (isDeleting || Math.abs(now - deletedAt) < deleteEveryMicros) return;
		isDeleting = true;
		deletedAt = now;
		dropExpired(sql, writer, now)
			.catch(() => undefined)
			.finally(() => {
				isDeleting = false;
			});
	};
	const timer = setInterval(tick, everyMs).unref();
	return { stop: () => clearInterval(timer) };
}

interface LogState {
	/** 1: somebody else is at it. */
	busy: number;
	/** Pages in the log, and how many of them are in the database already. */
	log: number;
	checkpointed: number;
}

/**
 * Given the log's length at the last tick; its length now. A log that did not grow since is cut off, one that grew
 * long is copied back while everybody may go on writing. Never inside a commit, which would make a request wait.
 */
export function tendLog(db: Database.Database, before: number): number {
	try {
		const { log, checkpointed } = checkpoint(db, 'NOOP');
		if (log > fewPages && log === before) return checkpoint(db, 'TRUNCATE').log;
		if (log - checkpointed > mostPages) checkpoint(db, 'PASSIVE');
		return log;
	} catch (error) {
		// The log stays as it is, and the next commit meets the same disk.
		if (sqliteCode(error) === null) throw error;
		return before;
	}
}

function checkpoint(db: Database.Database, mode: 'NOOP' | 'PASSIVE' | 'TRUNCATE'): LogState {
	const [state] = db.pragma(`wal_checkpoint(${mode})`) as LogState[];
	return state ?? { busy: 1, log: 0, checkpointed: 0 };
}

/**
 * Deletes answers to idempotency keys after the 24 hours they are kept, the log of notifications after its 30 days, and
 * processes that ended without a word.
 */
export async function dropExpired(sql: Sql, writer: Writer, now: Micros): Promise<void> {
	await inSlices(writer, () =>
		sql.run(
			// idempotency_keys_by_time
			`DELETE FROM idempotency_keys
			WHERE rowid IN (SELECT rowid FROM idempotency_keys WHERE created_at <= ? LIMIT ?)`,
			now - microsPerDay,
			sliceSize,
		),
	);
	await inSlices(writer, () => dropDeliveries(sql, { now, limit: sliceSize }));
	await inSlices(writer, () => sql.run('DELETE FROM processes WHERE heartbeat_at <= ?', now - microsPerDay));
}

async function inSlices(writer: Writer, drop: () => { changes: number }): Promise<void> {
	while ((await writer.write(() => drop().changes)) >= sliceSize);
}
