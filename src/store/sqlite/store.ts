import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type Database from 'better-sqlite3';
import {
	type Clock,
	type Micros,
	microsPerMs,
	microsPerSecond,
	monotonicMicros,
	steadyOf,
} from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { heartbeatEveryMicros, type ProcessIdentity, processMark, processPlace } from '../core/processes.js';
import { setAside } from '../core/sql.js';
import type { WrappingKey } from '../maintenance.js';
import {
	carryOut,
	driverOf,
	type Queue,
	type Reads,
	type Run,
	traitsOf,
	type Writes,
} from '../operations.js';
import { createSliceSize, inSlices, leaseInSlices, type Steps } from '../slices.js';
import type { Store } from '../store.js';
import { endsTransaction, isBusy, openConnection, sqliteCode, translateFailure } from './connection.js';
import {
	assertKeys,
	beat,
	type Core,
	closeHolds,
	createCore,
	endBeat,
	findOthers,
	openLanes,
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
	/** How long the event for an open or a click may wait to share a commit; 200 ms by default. */
	eventDelayMs?: number;
	/** `apart`: a timer checkpoints the log, so that no commit has to. */
	upkeep?: 'apart' | 'with_commits';
	isTrial?: boolean;
	hasShortLog?: boolean;
	keys?: readonly WrappingKey[];
}

/** SQLite blocks the thread while it waits for a lock, so wait briefly and retry after other work. */
const busyTimeoutMs = 10;
/**
 * A process that is alone loads faster with large groups and a long log. A process beside others pauses after a group,
 * so that the others can write. In the pause it checkpoints the log, because a checkpoint within a commit took half a
 * second. A server does large work in slices, so that requests need not wait. Smaller slices would rewrite index pages
 * more often. A server's groups are small: its main thread handles the answers of one group while its writing thread
 * writes the next.
 */
const paces = {
	alone: { maxGroupMs: 2_000, maxSliceMs: 2_000, pauseMs: 15, pauseEveryMs: 1_000, logPages: 50_000 },
	besideOthers: { maxGroupMs: 100, maxSliceMs: 200, pauseMs: 15, pauseEveryMs: 0, logPages: 12_500 },
	/** A dry run writes nothing, so large slices gain nothing. */
	trialBesideOthers: { maxGroupMs: 50, maxSliceMs: 50, pauseMs: 15, pauseEveryMs: 0, logPages: 12_500 },
	server: { maxGroupMs: 100, maxGroupCosts: 4, maxSliceMs: 200, pauseMs: 0, logPages: 0 },
	serverBesideOthers: { maxGroupMs: 100, maxGroupCosts: 4, maxSliceMs: 200, pauseMs: 15, logPages: 0 },
};

const shortLogPages = 500;

const upkeepEveryMs = 1_000;

const longestGatheringMs = 2;

export class SqliteStore implements Store {
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
	readonly #delays = {
		not: () => 0,
		briefly: () => Math.min(this.#writer.heldMs(), longestGatheringMs),
		as_opens: () => this.#options.eventDelayMs ?? 200,
	};
	#pace: PaceOfProcess;
	#lastBeat: Micros | null = null;
	/** Processes that send or serve also send heartbeats while idle. Other commands send them only with their writes. */
	#beating: NodeJS.Timeout | null = null;
	#isClosed = false;

	constructor(path: string, options: OpenOptions) {
		const { clock, mode, keys = [], role = 'cli', isTrial = false, onCreated, onLocked } = options;
		const lockTimeoutMs = options.lockTimeoutMs ?? mostLockTimeoutMs;
		this.#path = path;
		this.#options = options;
		// Loading node:crypto for a random id would cost every short command 3 ms.
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
		// All processes that use the file run on this machine. `isLost` checks their PIDs, so do not wait for the
		// heartbeats.
		reclaimLeases(sql, { me, heardBefore: now, now });
		if (clock.steady !== undefined) proveTime(sql, { now, steady, boot: processPlace() });
		this.#pace = this.#paces[findOthers(sql, me, now).length > 0 ? 1 : 0];
		this.#db.pragma(`wal_autocheckpoint = ${this.#pace.logPages}`);
		this.#lastBeat = steady;
	}

	readonly #write: Run = (name, command) => {
		const { prepares = false, overwrites = false, waits } = traitsOf(name);
		const operate = () => carryOut(this.#core, name, this.#kept.timely(command));
		const maxDelayMs = this.#delays[waits?.(command as never) ?? 'not']();
		const done = this.#writer.write(operate, { isSetup: prepares, maxDelayMs });
		return overwrites ? this.#overwritten(done) : done;
	};

	#makeWrites(): Writes {
		const sliceSize = () => createSliceSize(() => this.#pace.maxSliceMs);
		const stagingSize = sliceSize();
		const importLine = new ImportLine(this.#core, this.#writer, sliceSize());
		return {
			...driverOf('writes', this.#write),
			...inSlices(stepsOf(this.#core, this.#writer), {
				rows: stagingSize.rows,
				took: (rows) => stagingSize.took(rows, this.#writer.heldMs()),
			}),
			rewriteSecrets: (command) => {
				const rewrite = () => {
					const others = findOthers(this.#sql, this.#me, this.#kept.timely(command).now);
					return others.length > 0 ? others : this.#core.rewriteSecrets(command);
				};
				return this.#overwritten(this.#writer.write(rewrite));
			},
			putImportBatch: (command) => importLine.put(command),
		};
	}

	#makeQueue(): Queue {
		return {
			...driverOf('queue', this.#write),
			lease: (command) => {
				if (this.#beating === null) {
					this.#me.role = 'send';
					this.#lastBeat = null;
					this.#keepBeating();
				}
				const lease = () => this.#core.leaseSlice(this.#kept.timely(command));
				return leaseInSlices(() => this.#writer.write(lease));
			},
		};
	}

	#overwritten<R>(done: Promise<R>): Promise<R> {
		return this.#writer.isTrial ? done : done.then((result) => this.#overwrite(result));
	}

	/** Truncates the log, because deleted data stays in the file and the log until then. */
	async #overwrite<R>(result: R): Promise<R> {
		const failed = (why: string, cause?: unknown) => {
			const text = `it is done, but deleted data is still in ${this.#path}: ${why}`;
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
		reads: createReads({ db, path, core: createCore(createSql(db, keys)) }),
		close: async () => void db.close(),
	};
}

interface ReadingConnection {
	db: Database.Database;
	path: string;
	core: Core;
}

/** After this time, the next read waits for a new turn of the event loop, which then handles signals and progress. */
const longestTurn: Micros = 50 * microsPerMs;

export function createReads({ db, path, core }: ReadingConnection): Reads {
	const begin = db.prepare('BEGIN');
	const commit = db.prepare('COMMIT');
	const rollback = db.prepare('ROLLBACK');
	// In a damaged file, the commit fails too. Ignore its error: nobody can catch it in a microtask, and the read has
	// reported it.
	const end = () => {
		try {
			if (db.inTransaction) commit.run();
		} catch {
			if (db.inTransaction) rollback.run();
		}
	};
	let turnBegan = 0;
	return driverOf('reads', async (name, command) => {
		if (monotonicMicros() - turnBegan > longestTurn) {
			await setImmediate();
			turnBegan = monotonicMicros();
		}
		try {
			// Reads that begin together share a snapshot, because opening one costs more than a short read.
			if (!db.inTransaction) {
				begin.run();
				queueMicrotask(end);
			}
			return carryOut(core, name, command);
		} catch (error) {
			throw isBusy(error) || endsTransaction(error) ? translateFailure(error, path) : error;
		}
	});
}

const smallestStep: Micros = microsPerSecond;

const longestBehind: Micros = 600 * microsPerSecond;

/**
 * Follows steps of the machine's clock, which come from NTP or from the machine's sleep. The database stores how far
 * the clock is ahead of the steady clock. After a step, the first process that writes moves the queue's times, so that
 * leases and waits keep their length.
 */
class KeptClock {
	readonly #clock: Clock;
	readonly #boot: string;
	/** Without a boot id, false until the first `follow`, because the stored clock may be from an earlier boot. */
	#isKnown: boolean;
	#lastAhead: Micros | null = null;
	#step: { by: Micros; at: Micros } | null = null;

	constructor(clock: Clock) {
		this.#clock = clock;
		this.#boot = clock.steady === undefined ? '' : readBoot();
		this.#isKnown = this.#boot !== '';
	}

	/** With `isBeat`, also stores small differences, so that they do not add up. */
	follow(sql: Sql, { isBeat }: { isBeat: boolean }): void {
		if (this.#clock.steady === undefined) return;
		const at = this.#clock.steady();
		const now = this.#clock.now();
		const ahead = now - at;
		const seen = this.#lastAhead === null ? 0 : ahead - this.#lastAhead;
		if (Math.abs(seen) >= smallestStep) this.#step = { by: seen, at };
		this.#lastAhead = ahead;
		const kept = sql.get('SELECT boot, ahead FROM clock') as { boot: string; ahead: Micros } | undefined;
		const isKnown = this.#isKnown && kept?.boot === this.#boot;
		this.#isKnown = true;
		if (kept === undefined || !isKnown) {
			// After a reboot, do not move the times: only the machine's clock knows how long the machine was off.
			sql.run(
				`INSERT INTO clock (id, boot, ahead) VALUES (1, ?, ?)
				ON CONFLICT (id) DO UPDATE SET boot = excluded.boot, ahead = excluded.ahead`,
				[this.#boot, ahead],
			);
			return;
		}
		const by = ahead - kept.ahead;
		const isStep = Math.abs(by) >= smallestStep;
		if (isStep) moveTimes(sql, { now, by });
		if (isStep || (isBeat && by !== 0)) sql.run('UPDATE clock SET ahead = ?', [ahead]);
	}

	timely<C>(command: C): C {
		if (this.#step === null || typeof command !== 'object' || command === null) return command;
		if ('settlements' in command && Array.isArray(command.settlements))
			return { ...command, settlements: command.settlements.map((each) => this.#timelyOutcome(each)) };
		if (!('now' in command) || typeof command.now !== 'number') return command;
		return moved(command, this.#behind(command.now), ['now', 'until', 'retry_at']);
	}

	#timelyOutcome<S extends { at: Micros; outcome?: object; result?: object }>(settlement: S): S {
		const by = this.#behind(settlement.at);
		const { outcome, result } = settlement;
		return {
			...moved(settlement, by, ['at']),
			...(outcome !== undefined && { outcome: moved(outcome, by, ['due_at']) }),
			...(result !== undefined && { result: moved(result, by, ['due_at']) }),
		};
	}

	#behind(asked: Micros): Micros {
		const { steady } = this.#clock;
		if (steady === undefined || this.#step === null || steady() - this.#step.at > longestBehind) return 0;
		const late = this.#clock.now() - asked;
		return Math.abs(late - this.#step.by) < Math.abs(late) ? this.#step.by : 0;
	}
}

function moved<O extends object>(record: O, by: Micros, times: readonly string[]): O {
	if (by === 0) return record;
	const entries = Object.entries(record).map(([name, value]) => [
		name,
		typeof value === 'number' && times.includes(name) ? value + by : value,
	]);
	return Object.fromEntries(entries) as O;
}

function readBoot(): string {
	try {
		return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
	} catch {
		return '';
	}
}

/**
 * Due messages stay due, and other messages wait as long as before. If the clock went back, the time of a due message
 * may now lie in the future, so it moves too. A million rows take six seconds.
 */
function moveTimes(sql: Sql, { now, by }: { now: Micros; by: Micros }): void {
	const before = now - by;
	const after = Math.min(before, now);
	closeHolds(sql, before);
	for (const lane of openLanes(sql)) {
		sql.run(
			`UPDATE messages
			SET due_at = due_at + ?, wake_at = CASE wake_at WHEN ${setAside} THEN wake_at ELSE wake_at + ? END
			WHERE id IN (
				SELECT id FROM messages INDEXED BY messages_due WHERE lane = ? AND wake_at IS NOT NULL AND wake_at > ?
			)`,
			[by, by, lane, after],
		);
	}
	sql.run('UPDATE webhook_deliveries SET due_at = due_at + ? WHERE due_at IS NOT NULL AND due_at > ?', [
		by,
		after,
	]);
	sql.run('UPDATE queue_pauses SET since = since + ?, retry_at = retry_at + ?', [by, by]);
	// Moves rows through negative numbers, so that none collides with a row that moves later.
	sql.run('UPDATE limit_uses SET until = -(until + ?)', [by]);
	sql.run('UPDATE limit_uses SET until = -until');
	sql.run('UPDATE limit_rooms SET room_at = room_at + ?', [by]);
	sql.run(
		'UPDATE campaigns SET last_leased_at = last_leased_at + ? WHERE has_open_work = 1 AND last_leased_at > 0',
		[by],
	);
	sql.run('UPDATE processes SET started_at = started_at + ?, heartbeat_at = heartbeat_at + ?', [by, by]);
	// Keys last for a day of elapsed time: if one expired early, a repeated call would send again.
	sql.run('UPDATE idempotency_keys SET created_at = created_at + ?', [by]);
}
