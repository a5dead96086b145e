import { hostname } from 'node:os';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type Database from 'better-sqlite3';
import { type Clock, type Micros, microsPerMs, monotonicMicros, steadyOf } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { isReading } from '../../engine/rules/outcomes.js';
import { heartbeatEveryMicros, type ProcessIdentity, processMark, processPlace } from '../core/processes.js';
import type { WrappingKey } from '../maintenance.js';
import { driverOf, type Run, traitsOf } from '../operations.js';
import type { Queue } from '../queue.js';
import { createSliceSize, inSlices, leaseInSlices, type Steps } from '../slices.js';
import type { Reads, Store, Writes } from '../store.js';
import { KeptClock } from './clock-steps.js';
import { endsTransaction, isBusy, openConnection, sqliteCode, translateFailure } from './connection.js';
import {
	assertKeys,
	beat,
	type Core,
	carryOut,
	createCore,
	endBeat,
	findOthers,
	proveTime,
	reclaimLeases,
} from './core.js';
import { ImportLine } from './import-line.js';
import { migrate } from './migrations.js';
import { createSql, type Sql } from './sql.js';
import { copyLogBack, startUpkeep } from './upkeep.js';
import { type Pace, Writer } from './writer.js';

export const mostLockTimeoutMs = 10_000;

export interface OpenOptions {
	clock: Clock;
	mode: 'create' | 'existing';
	onCreated?: () => void;
	role?: string;
	lockTimeoutMs?: number;
	onLocked?: (() => () => void) | undefined;
	/** Milliseconds that opens and clicks may wait for other writes; 200 by default. */
	eventDelayMs?: number;
	/** `apart`: a long-running process copies the log back apart from its commits, and deletes expired data. */
	upkeep?: 'apart' | 'with_commits';
	isTrial?: boolean;
	hasShortLog?: boolean;
	keys?: readonly WrappingKey[];
}

/** SQLite's wait for a lock is a synchronous sleep, so retry after a pause for other work. */
const busyTimeoutMs = 10;
/**
 * Alone, large groups and a long log speed up bulk loads. With others around every process gets a turn, and copies the log
 * back behind the lock: within a commit it took half a second. A server cuts large work into slices for its own
 * requests, no smaller than needed, since each commit writes whole pages of an index. Its small groups keep both
 * threads busy.
 */
const paces = {
	alone: { maxGroupMs: 2_000, maxSliceMs: 2_000, pauseMs: 15, pauseEveryMs: 1_000, logPages: 50_000 },
	besideOthers: { maxGroupMs: 100, maxSliceMs: 200, pauseMs: 15, pauseEveryMs: 0, logPages: 12_500 },
	/** Nothing is written, so large slices gain nothing. */
	trialBesideOthers: { maxGroupMs: 50, maxSliceMs: 50, pauseMs: 15, pauseEveryMs: 0, logPages: 12_500 },
	server: { maxGroupMs: 100, maxGroupCosts: 4, maxSliceMs: 200, pauseMs: 0, logPages: 0 },
	serverBesideOthers: { maxGroupMs: 100, maxGroupCosts: 4, maxSliceMs: 200, pauseMs: 15, logPages: 0 },
};

const shortLogPages = 500;

const upkeepEveryMs = 1_000;

const longestGatheringMs = 2;

export function openSqliteStore(path: string, options: OpenOptions): Store {
	return new SqliteStore(path, options);
}

class SqliteStore implements Store {
	readonly reads: Reads;
	readonly writes: Writes;
	readonly queue: Queue;
	readonly #path: string;
	readonly #options: OpenOptions;
	readonly #me: ProcessIdentity;
	readonly #db: Database.Database;
	readonly #sql: Sql;
	readonly #core: Core;
	readonly #kept: KeptClock;
	readonly #writer: Writer;
	readonly #paces: readonly [alone: PaceOfProcess, beside: PaceOfProcess];
	readonly #upkeep: { stop(): void } | null;
	#pace: PaceOfProcess;
	#lastBeat: Micros | null = null;
	/** A command beats with its writes; a process that sends or keeps running beats when idle too. */
	#beating: NodeJS.Timeout | null = null;
	#isClosed = false;

	constructor(path: string, options: OpenOptions) {
		const { clock, mode, keys = [], role = 'cli', isTrial = false, onCreated, onLocked } = options;
		const lockTimeoutMs = options.lockTimeoutMs ?? mostLockTimeoutMs;
		this.#path = path;
		this.#options = options;
		// An unguessable name would load node:crypto, 3 ms of every short command.
		const id = `${processMark()}/${process.pid}-${Math.random().toString(36).slice(2)}`;
		this.#me = { id, role, host: hostname(), pid: process.pid };
		const db = openConnection({ path, mode, role: 'writer', busyTimeoutMs: lockTimeoutMs, onCreated });
		const sql = createSql(db, keys);
		try {
			migrate(db, { path, me: this.#me, now: clock.now() });
			db.pragma(`busy_timeout = ${busyTimeoutMs}`);
			assertKeys(sql, keys);
		} catch (error) {
			db.close();
			throw translateFailure(error, path);
		}
		this.#db = db;
		this.#sql = sql;
		this.#core = createCore(sql, { isTrial });
		this.#kept = new KeptClock(clock);
		this.#paces = pacesOf(options);
		this.#pace = this.#paces[0];
		const writer = new Writer({
			...{ db, path, isTrial, lockTimeoutMs, onLocked },
			pace: () => this.#pace,
			beforeGroup: () => this.#beat(),
			afterLongGroup: () => copyLogBack(db),
		});
		this.#writer = writer;
		const tendsLog = options.upkeep === 'apart';
		this.#upkeep =
			role === 'cli' ? null : startUpkeep({ db, sql, writer, clock, everyMs: upkeepEveryMs, tendsLog });
		this.reads = createReads({ db, path, core: this.#core });
		this.writes = this.#makeWrites();
		this.queue = this.#makeQueue();
		if (role !== 'cli') this.#keepBeating();
	}

	async close(): Promise<void> {
		if (this.#isClosed) return;
		this.#isClosed = true;
		if (this.#beating !== null) clearInterval(this.#beating);
		this.#upkeep?.stop();
		const leave = () => endBeat(this.#sql, this.#me);
		if (this.#lastBeat !== null) await this.#writer.write(leave).catch(() => undefined);
		await this.#writer.close();
		this.#db.close();
	}

	#keepBeating(): void {
		const beating = () => void this.#writer.write(() => undefined).catch(() => undefined);
		this.#beating = setInterval(beating, heartbeatEveryMicros / microsPerMs).unref();
		beating();
	}

	#beat(): void {
		const { clock } = this.#options;
		const [sql, me] = [this.#sql, this.#me];
		const now = clock.now();
		const steady = steadyOf(clock);
		const isBeat = this.#lastBeat === null || Math.abs(steady - this.#lastBeat) >= heartbeatEveryMicros;
		this.#kept.follow(sql, { isBeat });
		if (!isBeat) return;
		beat(sql, me, now);
		// All processes of a file are of one machine.
		reclaimLeases(sql, { me, heardBefore: now, now });
		if (clock.steady !== undefined) proveTime(sql, { now, steady, boot: processPlace() });
		this.#pace = this.#paces[findOthers(sql, me, now).length > 0 ? 1 : 0];
		this.#db.pragma(`wal_autocheckpoint = ${this.#pace.logPages}`);
		this.#lastBeat = steady;
	}

	#makeWrites(): Writes {
		const [core, writer] = [this.#core, this.#writer];
		const { eventDelayMs = 200 } = this.#options;
		const sliceSize = () => createSliceSize(() => this.#pace.maxSliceMs);
		const stagingSize = sliceSize();
		const importLine = new ImportLine(core, writer, sliceSize());
		const overwritten = <R>(done: Promise<R>) =>
			writer.isTrial ? done : done.then((result) => this.#overwrite(result));
		const write: Run = (name, command) => {
			const { prepares = false, overwrites = false } = traitsOf(name);
			const operate = () => carryOut(core, name, this.#kept.timely(command));
			const done = writer.write(operate, { isSetup: prepares });
			return overwrites ? overwritten(done) : done;
		};
		return {
			...driverOf('writes', write),
			...inSlices(stepsOf(core, writer), {
				rows: stagingSize.rows,
				took: (rows) => stagingSize.took(rows, writer.heldMs()),
			}),
			rewriteSecrets: (command) =>
				overwritten(
					writer.write(() => {
						const by = findOthers(this.#sql, this.#me, this.#kept.timely(command).now);
						return by.length > 0 ? by : core.rewriteSecrets(command);
					}),
				),
			putImportBatch: (command) => importLine.put(command),
			declareRow: (command) => writer.write(() => core.declareRow(command), this.#company()),
			recordEvents: (command) => {
				// A person who unsubscribes waits for the answer, and must not get another mail meanwhile.
				const maxDelayMs = command.events.every(isReading) ? eventDelayMs : 0;
				return writer.write(() => core.recordEvents(command), { maxDelayMs });
			},
		};
	}

	#makeQueue(): Queue {
		const [core, writer] = [this.#core, this.#writer];
		const write: Run = (name, command) =>
			writer.write(() => carryOut(core, name, this.#kept.timely(command)));
		return {
			...driverOf('queue', write),
			lease: (command) => {
				if (this.#beating === null) {
					this.#me.role = 'send';
					this.#lastBeat = null;
					this.#keepBeating();
				}
				return leaseInSlices(() => writer.write(() => core.leaseSlice(this.#kept.timely(command))));
			},
			settle: (command) =>
				writer.write(() => core.settle(this.#kept.timely(command)), command.gathers ? this.#company() : {}),
			setCalling: (command) =>
				writer.write(() => core.setCalling(command), command.gathers ? this.#company() : {}),
		};
	}

	#company(): { maxDelayMs: number } {
		return { maxDelayMs: Math.min(this.#writer.heldMs(), longestGatheringMs) };
	}

	/**
	 * Deleted data stays in the file and the log until the log is cut off, which a reader prevents. Throws `StoreError`
	 * "not_overwritten".
	 */
	async #overwrite<R>(result: R): Promise<R> {
		const failed = (why: string, cause?: unknown) => {
			const text = `it is done, but what was deleted is still in ${this.#path}: ${why}`;
			return new StoreError('not_overwritten', text, { cause });
		};
		const end = performance.now() + (this.#options.lockTimeoutMs ?? mostLockTimeoutMs);
		for (;;) {
			try {
				if (this.#db.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) === 0) return result;
			} catch (error) {
				const code = sqliteCode(error);
				if (code === null) throw error;
				if (!isBusy(error)) throw failed(`the disk failed (${code})`, error);
			}
			if (performance.now() >= end) throw failed('another process reads it');
			await setTimeout(busyTimeoutMs);
		}
	}
}

interface PaceOfProcess extends Pace {
	maxSliceMs: number;
	logPages: number;
}

function pacesOf({ upkeep, hasShortLog, isTrial }: OpenOptions): readonly [PaceOfProcess, PaceOfProcess] {
	if (isTrial) return [paces.alone, paces.trialBesideOthers];
	if (upkeep === 'apart') return [paces.server, paces.serverBesideOthers];
	if (!hasShortLog) return [paces.alone, paces.besideOthers];
	return [
		{ ...paces.alone, logPages: shortLogPages },
		{ ...paces.besideOthers, logPages: shortLogPages },
	];
}

export function stepsOf(core: Core, writer: Writer): Steps {
	const step = (name: string, command: unknown) =>
		writer.write(() => carryOut(core, name, command), { group: 'bulk' });
	return { step: step as Steps['step'], isTrial: writer.isTrial };
}

export interface Reader {
	readonly reads: Reads;
	close(): Promise<void>;
}

const readerTimeoutMs = 1_000;

export function openSqliteReader(path: string, keys: readonly WrappingKey[] = []): Reader {
	const db = openConnection({ path, mode: 'existing', role: 'reader', busyTimeoutMs: readerTimeoutMs });
	return {
		reads: createReads({ db, path, core: createCore(createSql(db, keys)), inSnapshot: turnSnapshots(db) }),
		close: async () => void db.close(),
	};
}

interface ReadingConnection {
	db: Database.Database;
	path: string;
	core: Core;
	inSnapshot?: InSnapshot;
}

type InSnapshot = <R>(read: () => R) => R;

/** A walk of thousands of reads would otherwise block signals and progress. */
const longestTurn: Micros = 50 * microsPerMs;

export function createReads({ db, path, core, inSnapshot = snapshots(db) }: ReadingConnection): Reads {
	let turnBegan = 0;
	return driverOf('reads', async (name, command) => {
		if (monotonicMicros() - turnBegan > longestTurn) {
			await setImmediate();
			turnBegan = monotonicMicros();
		}
		try {
			return inSnapshot(() => carryOut(core, name, command));
		} catch (error) {
			throw isBusy(error) || endsTransaction(error) ? translateFailure(error, path) : error;
		}
	});
}

function snapshots(db: Database.Database): InSnapshot {
	const transact = db.transaction((read: () => unknown) => read());
	return (read) => transact.deferred(read) as ReturnType<typeof read>;
}

/** All reads of a turn share one: a snapshot costs more than a short read. */
function turnSnapshots(db: Database.Database): InSnapshot {
	const begin = db.prepare('BEGIN');
	const commit = db.prepare('COMMIT');
	const end = () => {
		if (db.inTransaction) commit.run();
	};
	return (read) => {
		if (!db.inTransaction) {
			begin.run();
			process.nextTick(end);
		}
		return read();
	};
}
