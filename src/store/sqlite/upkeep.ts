import { setTimeout } from 'node:timers/promises';
import type Database from 'better-sqlite3';
import { type Clock, type Micros, microsPerDay, steadyOf } from '../../api/datetime.js';
import { dropInSlices } from '../slices.js';
import { sqliteCode } from './connection.js';
import { expiries, provenTime } from './core.js';
import type { Sql } from './sql.js';
import type { Writer } from './writer.js';

interface UpkeepOptions {
	db: Database.Database;
	sql: Sql;
	writer: Writer;
	clock: Clock;
	everyMs: number;
	tendsLog: boolean;
}

/** A checkpoint of 8 MiB takes as long as a few commits. A longer log slows down every read. */
const mostPages = 1_000;
/** Heartbeats alone do not justify the two disk syncs of a checkpoint. */
const fewPages = 100;
const deleteEveryMicros: Micros = microsPerDay / 24;

export function startUpkeep({ db, sql, writer, clock, everyMs, tendsLog }: UpkeepOptions): { stop(): void } {
	let logged = 0;
	let deletedAt = Number.NEGATIVE_INFINITY;
	let isDeleting = false;
	const tick = () => {
		if (tendsLog) logged = tendLog(db, logged);
		const steady = steadyOf(clock);
		if (isDeleting || steady - deletedAt < deleteEveryMicros) return;
		isDeleting = true;
		deletedAt = steady;
		writer
			.write(() => provenTime(sql, clock.now()))
			.then((now) => dropExpired(sql, writer, now))
			.then(() => giveBack(db, writer))
			.catch(() => undefined)
			.finally(() => {
				isDeleting = false;
			});
	};
	const timer = setInterval(tick, everyMs).unref();
	return { stop: () => clearInterval(timer) };
}

interface LogState {
	busy: number;
	log: number;
	checkpointed: number;
}

/**
 * Truncates a log that has not grown since the last tick, and checkpoints a long one. Commits do neither, because their
 * requests would wait.
 */
export function tendLog(db: Database.Database, before: number): number {
	return orAsItIs(before, () => {
		const { log, checkpointed } = checkpoint(db, 'NOOP');
		if (log > fewPages && log === before) return checkpoint(db, 'TRUNCATE').log;
		if (log - checkpointed > mostPages) checkpoint(db, 'PASSIVE');
		return log;
	});
}

export function copyLogBack(db: Database.Database): void {
	orAsItIs(0, () => checkpoint(db, 'PASSIVE').log);
}

/** Ignores a failure: the log stays, and the next commit reports the disk's error. */
function orAsItIs(log: number, attempt: () => number): number {
	try {
		return attempt();
	} catch (error) {
		if (sqliteCode(error) === null) throw error;
		return log;
	}
}

function checkpoint(db: Database.Database, mode: 'NOOP' | 'PASSIVE' | 'TRUNCATE'): LogState {
	const [state] = db.pragma(`wal_checkpoint(${mode})`) as LogState[];
	return state ?? { busy: 1, log: 0, checkpointed: 0 };
}

export async function dropExpired(sql: Sql, writer: Writer, now: Micros): Promise<void> {
	await dropInSlices(expiries, now, (drop, command) => writer.write(() => drop(sql, command)));
}

const keptFreePages = 2_000;
const pagesAtOnce = 250;

async function giveBack(db: Database.Database, writer: Writer): Promise<void> {
	const free = () => Number(db.pragma('freelist_count', { simple: true }));
	if (db.pragma('auto_vacuum', { simple: true }) !== 2) return;
	while (free() > keptFreePages) {
		await writer.write(() => db.pragma(`incremental_vacuum(${pagesAtOnce})`), { group: 'bulk' });
		await setTimeout(writer.heldMs());
	}
}
