/** The store on SQLite, its core run in this thread. */

import { hostname } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import type Database from 'better-sqlite3';
import { type Clock, type Micros, microsPerMs, steadyOf } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { isReading } from '../../engine/rules/events.js';
import {
	heartbeatEveryMicros,
	type LiveProcess,
	type ProcessIdentity,
	processPlace,
} from '../core/processes.js';
import type { WrappingKey } from '../keys.js';
import { type Command, driverOf, type Run, traitsOf } from '../operations.js';
import type { Queue } from '../queue.js';
import { createSliceSize, inSlices, leaseInSlices, type Steps } from '../slices.js';
import type { Store, Writes } from '../store.js';
import { type KeptClock, keepClock, pullForward } from './clock-steps.js';
import { type ConnectionOptions, openConnection } from './connection.js';
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
import { isBusy, sqliteCode, translateFailure } from './failures.js';
import { createImportLine, type ImportLine } from './import-line.js';
import { migrate } from './migrations.js';
import { createReads } from './reads.js';
import { createSql } from './sql.js';
import { startUpkeep } from './upkeep.js';
import { createWriter, type Writer, type WriterOptions } from './writer.js';

export interface SqliteOptions extends Pick<ConnectionOptions, 'path' | 'mode' | 'onCreated'> {
	clock: Clock;
	/** The role of this process for others: `serve`, `worker`, `cli`. */
	role: string;
	/** Identifies this opening among all processes; unique. */
	processId: string;
	lockTimeoutMs: number;
	onLocked?: WriterOptions['onLocked'];
	/** How long opens and clicks may wait for other writes to share a commit. */
	eventDelayMs: number;
	/** See `OpenOptions`. */
	upkeep: 'apart' | 'with_commits';
	isTrial: boolean;
	hasShortLog: boolean;
	keys: readonly WrappingKey[];
}

/** SQLite's own wait for a lock is a synchronous sleep: keep it short, and retry after a pause for other work. */
const busyTimeoutMs = 10;
/**
 * Alone, groups may be large and the log long, which speeds up bulk loads; a pause each second is for a process that has
 * just begun, which is known once it has had the lock. Beside others every process gets a turn, and one that writes much
 * copies the log back itself, behind the lock: within a request's commit it took half a second. A server cuts large work
 * into slices for its own requests too, no smaller than needed: rows of an import lie on pages of their own, and each
 * commit writes those whole. Its clients that wait for one commit ask again together; small groups keep both threads busy.
 */
const paces = {
	alone: { maxGroupMs: 2_000, maxSliceMs: 2_000, pauseMs: 15, pauseEveryMs: 1_000, logPages: 50_000 },
	besideOthers: { maxGroupMs: 100, maxSliceMs: 200, pauseMs: 15, pauseEveryMs: 0, logPages: 12_500 },
	/** Nothing is written, so large slices gain nothing. */
	trialBesideOthers: { maxGroupMs: 50, maxSliceMs: 50, pauseMs: 15, pauseEveryMs: 0, logPages: 12_500 },
	server: { maxGroupMs: 100, maxGroupCosts: 4, maxSliceMs: 200, pauseMs: 0, logPages: 0 },
	serverBesideOthers: { maxGroupMs: 100, maxGroupCosts: 4, maxSliceMs: 200, pauseMs: 15, logPages: 0 },
};

/** Once copied back, the log is overwritten in place and does not grow: the wait for the disk is then a quarter. */
const shortLogPages = 500;

/** The log of a busy server grows by about 10 MiB in this time. */
const upkeepEveryMs = 1_000;

/** Throws `DatabaseMissing` and `StoreError`. */
export function openSqliteStore(options: SqliteOptions): Store {
	const { path, clock } = options;
	// The switch to the log and a migration are not retried: they may sleep for the lock.
	const db = openConnection({
		path,
		mode: options.mode,
		role: 'writer',
		busyTimeoutMs: options.lockTimeoutMs,
		onCreated: options.onCreated,
	});
	const me: ProcessIdentity = {
		id: options.processId,
		role: options.role,
		host: hostname(),
		pid: process.pid,
	};
	const sql = createSql(db, options.keys);
	try {
		migrate(db, { path, me, now: clock.now() });
		db.pragma(`busy_timeout = ${busyTimeoutMs}`);
		// Before anything is read or sent: a secret that cannot be unwrapped now could not be later either.
		assertKeys(sql, options.keys);
	} catch (error) {
		db.close();
		throw translateFailure(error, path);
	}
	const core = createCore(sql, options);
	const kept = keepClock(clock);
	let lastBeat: { now: Micros; steady: Micros } | null = null;
	const isServer = options.upkeep === 'apart';
	const [freePace, sharedPace] = pacesOf(options);
	let pace = freePace;
	const heartbeat = () => {
		const now = clock.now();
		const steady = steadyOf(clock);
		const isBeat = lastBeat === null || Math.abs(steady - lastBeat.steady) >= heartbeatEveryMicros;
		kept.follow(sql, { isBeat });
		if (!isBeat) return;
		if (now < (lastBeat?.now ?? 0)) pullForward(sql, { host: me.host, now });
		beat(sql, me, now);
		// All processes of a file are of one machine.
		reclaimLeases(sql, { me, heardBefore: now, now });
		if (clock.steady !== undefined) proveTime(sql, { now, steady, boot: processPlace() });
		pace = findOthers(sql, me, now).length > 0 ? sharedPace : freePace;
		db.pragma(`wal_autocheckpoint = ${pace.logPages}`);
		lastBeat = { now, steady };
	};
	const writer = createWriter({
		db,
		path,
		isTrial: options.isTrial,
		...{ lockTimeoutMs: options.lockTimeoutMs, onLocked: options.onLocked },
		pace: () => pace,
		beforeGroup: heartbeat,
		afterLongGroup: () => copyLogBack(db),
		random: Math.random,
	});
	// The heartbeats of a command come with its writes; a process that sends or keeps running needs them when idle too.
	let timer: NodeJS.Timeout | null = null;
	const keepBeating = () => {
		const beating = () => void writer.write(() => undefined).catch(() => undefined);
		timer ??= setInterval(beating, heartbeatEveryMicros / microsPerMs).unref();
	};
	if (options.role !== 'cli') keepBeating();
	const tended = { db, sql, writer, clock, everyMs: upkeepEveryMs, tendsLog: isServer };
	const upkeep = options.role === 'cli' ? null : startUpkeep(tended);
	const importLine = createImportLine(
		core,
		writer,
		createSliceSize(() => pace.maxSliceMs),
	);
	// The clock may have been set back while no process had the database open.
	const begin = () => {
		const pull = () => pullForward(sql, { host: me.host, now: clock.now() });
		writer.write(pull).catch(() => undefined);
	};
	if (options.role !== 'cli') begin();
	let isClosed = false;
	return {
		reads: createReads({ db, path, core }),
		writes: createWrites({
			core,
			writer,
			importLine,
			stagingSize: createSliceSize(() => pace.maxSliceMs),
			kept,
			eventDelayMs: options.eventDelayMs,
			findOthers: (now) => findOthers(sql, me, now),
			overwritten: options.isTrial ? (done) => done : (done) => done.then(overwriteIn(db, options)),
		}),
		queue:
			options.role === 'cli'
				? atFirstLease(createQueue(core, writer, kept), () => {
						me.role = 'send';
						lastBeat = null;
						keepBeating();
						begin();
					})
				: createQueue(core, writer, kept),
		close: async () => {
			if (isClosed) return;
			isClosed = true;
			if (timer !== null) clearInterval(timer);
			upkeep?.stop();
			if (lastBeat !== null) await writer.write(() => endBeat(sql, me)).catch(() => undefined);
			await writer.close();
			db.close();
		},
	};
}

/** Preparations of a command before it sends: writes keep their order. */
function atFirstLease(queue: Queue, begin: () => void): Queue {
	let isDone = false;
	return {
		...queue,
		lease: (command) => {
			if (!isDone) begin();
			isDone = true;
			return queue.lease(command);
		},
	};
}

function pacesOf({ upkeep, hasShortLog, isTrial }: SqliteOptions) {
	if (isTrial) return [paces.alone, paces.trialBesideOthers] as const;
	if (upkeep === 'apart') return [paces.server, paces.serverBesideOthers] as const;
	if (!hasShortLog) return [paces.alone, paces.besideOthers] as const;
	return [
		{ ...paces.alone, logPages: shortLogPages },
		{ ...paces.besideOthers, logPages: shortLogPages },
	] as const;
}

// A failure loses nothing: the log stays, and the next commit meets the same disk.
function copyLogBack(db: Database.Database): void {
	try {
		db.pragma('wal_checkpoint(PASSIVE)');
	} catch (error) {
		if (sqliteCode(error) === null) throw error;
	}
}

/**
 * Deleted data stays in the file until the log is copied back, and in the log until that is cut off, which a reader
 * prevents while it reads. Throws `StoreError` "not_overwritten".
 */
function overwriteIn(db: Database.Database, { path, lockTimeoutMs }: SqliteOptions) {
	const failed = (why: string, cause?: unknown) =>
		new StoreError('not_overwritten', `it is done, but what was deleted is still in ${path}: ${why}`, {
			cause,
		});
	return async <R>(result: R): Promise<R> => {
		const end = performance.now() + lockTimeoutMs;
		while (!cutLog(db, failed)) {
			if (performance.now() >= end) throw failed('another process reads it');
			await setTimeout(busyTimeoutMs);
		}
		return result;
	};
}

/** False: a reader uses the log. */
function cutLog(db: Database.Database, failed: (why: string, cause: unknown) => StoreError): boolean {
	try {
		return db.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) === 0;
	} catch (error) {
		if (isBusy(error)) return false;
		const code = sqliteCode(error);
		throw code === null ? error : failed(`the disk failed (${code})`, error);
	}
}

interface WriteParts {
	core: Core;
	writer: Writer;
	importLine: ImportLine;
	stagingSize: ReturnType<typeof createSliceSize>;
	kept: KeptClock;
	eventDelayMs: number;
	/** Processes beside this one. */
	findOthers: (now: Micros) => LiveProcess[];
	/** Waits until the deleted data is in no file any more. */
	overwritten<R>(done: Promise<R>): Promise<R>;
}

function createWrites(parts: WriteParts): Writes {
	const { core, writer, importLine, stagingSize, kept, eventDelayMs, findOthers, overwritten } = parts;
	const write: Run = (name, command) => {
		const { prepares = false, overwrites = false } = traitsOf(name);
		const done = writer.write(() => carryOut(core, name, timely(kept, command)), { isSetup: prepares });
		return overwrites ? overwritten(done) : done;
	};
	return {
		...driverOf('writes', write),
		leaseDeliveries: (command) => writer.write(() => core.leaseDeliveries(kept.timelyLease(command))),
		settleDeliveries: ({ settlements }) =>
			writer.write(() =>
				core.settleDeliveries({
					settlements: settlements.map((each) =>
						kept.timelyOutcome(each, (by) => ({ result: movedBy(each.result, by) })),
					),
				}),
			),
		...inSlices(stepsOf(core, writer), {
			rows: stagingSize.rows,
			took: (rows) => stagingSize.took(rows, writer.heldMs()),
		}),
		rewriteSecrets: (command) =>
			overwritten(
				writer.write(() => {
					const by = findOthers(timely(kept, command).now);
					return by.length > 0 ? by : core.rewriteSecrets(command);
				}),
			),
		putImportBatch: importLine.put,
		declareRow: (command) => writer.write(() => core.declareRow(command), company(writer)),
		recordEvents: (command) => {
			// A person who unsubscribes waits for the answer, and must not get another mail meanwhile.
			const maxDelayMs = command.events.every(isReading) ? eventDelayMs : 0;
			return writer.write(() => core.recordEvents(command), { maxDelayMs });
		},
	};
}

/** Slices are operations of the same core, each in a group of its own. */
export function stepsOf(core: Core, writer: Writer): Steps {
	const step = (name: string, command: unknown) =>
		writer.write(() => carryOut(core, name, command), { group: 'bulk' });
	// Each answer is that of the operation of the same name.
	return { step: step as Steps['step'], isTrial: writer.isTrial };
}

/** Most commands carry the time of their caller. */
function timely<C>(kept: KeptClock, command: C): C {
	if (typeof command !== 'object' || command === null || !('now' in command)) return command;
	const { now } = command;
	return typeof now === 'number' ? kept.timely({ ...command, now }) : command;
}

/** Keeps the interval to the next try. */
function pausedNow(kept: KeptClock, command: Command<'pause'>): Command<'pause'> {
	const { now } = kept.timely(command);
	const { retry_at } = command;
	return { ...command, now, retry_at: retry_at === null ? null : retry_at + now - command.now };
}

/** The outcome of a message or a webhook delivery, with the time of its next attempt moved, if it has one. */
function movedBy<O extends object>(outcome: O, by: Micros): O {
	return 'due_at' in outcome && typeof outcome.due_at === 'number'
		? { ...outcome, due_at: outcome.due_at + by }
		: outcome;
}

function createQueue(core: Core, writer: Writer, kept: KeptClock): Queue {
	return {
		...driverOf('queue', (name, command) => writer.write(() => carryOut(core, name, command))),
		lease: (command) => leaseInSlices(() => writer.write(() => core.leaseSlice(kept.timelyLease(command)))),
		renew: (command) => writer.write(() => core.renew(kept.timelyLease(command))),
		settle: ({ settlements, gathers }) =>
			writer.write(
				() =>
					core.settle({
						settlements: settlements.map((each) =>
							kept.timelyOutcome(each, (by) => ({ outcome: movedBy(each.outcome, by) })),
						),
					}),
				gathers ? company(writer) : {},
			),
		setCalling: (command) =>
			writer.write(() => core.setCalling(command), command.gathers ? company(writer) : {}),
		pause: (command) => writer.write(() => core.pause(pausedNow(kept, command))),
	};
}

const longestGatheringMs = 2;

/** Calls end in no order: a commit for each would cost one wait for the disk for each call. */
function company(writer: Writer): { maxDelayMs: number } {
	return { maxDelayMs: Math.min(writer.heldMs(), longestGatheringMs) };
}
