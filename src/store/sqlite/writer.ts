/**
 * Groups writes: operations of one tick share one transaction and one wait for the disk, each in its own savepoint. A
 * promise resolves after the commit, so an acknowledged write survives a power cut.
 */

import type Database from 'better-sqlite3';
import { StoreError } from '../../api/errors.js';
import { endsTransaction, isBusy, sqliteCode, translateFailure } from './failures.js';
import { createLogRoom } from './wal-space.js';

export interface Writer {
	/** Runs `operate` in the next group. Rejects with its error, or with the error that failed the whole group. */
	write<R>(operate: () => R, options?: WriteOptions): Promise<R>;
	/** Each group is undone: work in slices is one slice then, because the next one would begin with the same rows. */
	readonly isTrial: boolean;
	/** How long the last group held the lock, its commit included, in milliseconds. */
	heldMs(): number;
	/** Commits waiting operations, then refuses new ones. */
	close(): Promise<void>;
}

export interface WriteOptions {
	/** How long it may wait for others to share its commit; 0 when absent. */
	maxDelayMs?: number;
	/**
	 * `bulk`: a group of its own, so that it needs no savepoint. Under a savepoint SQLite copies every page to memory
	 * before its first change: most pages of an index for 100,000 unordered rows. `load`: a bulk one that has looked up
	 * itself what its rows refer to. Foreign keys are not checked then, so that many new rows fit into one statement:
	 * otherwise SQLite copies the pages of that one. `shared` when absent.
	 */
	group?: 'shared' | 'bulk' | 'load';
	/** In a trial all later groups repeat it first: it was undone, and they build on it. */
	isSetup?: boolean;
}

export interface WriterOptions {
	db: Database.Database;
	path: string;
	/** Each group is undone after its answer. */
	isTrial?: boolean;
	/** How long a group tries to get the write lock before `StoreError` "locked". */
	lockTimeoutMs: number;
	/** Called where another process holds the lock; the result is called when it does not any more, or time is up. */
	onLocked?: (() => () => void) | undefined;
	/** How groups share the lock with other processes; asked before each. */
	pace: () => Pace;
	/** Called inside each group, before its first operation. */
	beforeGroup: () => void;
	/** Called after a group that blocked others, when the lock is free and before the pause. */
	afterLongGroup: () => void;
	/** 0 ≤ n < 1, for the jitter between tries. */
	random: () => number;
}

export interface Pace {
	/** How long a group may go on taking operations. */
	maxGroupMs: number;
	/**
	 * How many times the cost of a group, its commit above all, its operations may take. What waits then comes into the next
	 * one, and callers of this one have their answers meanwhile. Infinity when absent.
	 */
	maxGroupCosts?: number;
	/** After a group that took longer than a request may wait, how long this process does not ask for the lock. */
	pauseMs: number;
	/** The pause comes once groups have held the lock for so long together, and the log is left alone then. 0 when absent. */
	pauseEveryMs?: number;
}

interface Pending {
	group: 'shared' | 'bulk' | 'load';
	run(): void;
	resolve(): void;
	reject(error: unknown): void;
}

/** Between tries, besides SQLite's own wait: shorter than the pauses of others, or they would be missed. */
const retryDelay = { firstMs: 2, maxMs: 4 };
/** A longer group has blocked others. */
const longGroupMs = 20;

/**
 * One for each connection, closed before it. `operate` must be synchronous: it runs within the transaction of its
 * group.
 */
export function createWriter(options: WriterOptions): Writer {
	const { db, path } = options;
	const begin = db.prepare('BEGIN IMMEDIATE');
	const commit = db.prepare(options.isTrial ? 'ROLLBACK' : 'COMMIT');
	const savepoint = db.prepare('SAVEPOINT operation');
	const release = db.prepare('RELEASE operation');
	const undo = db.prepare('ROLLBACK TO operation');
	const room = createLogRoom(db, path);
	const pending: Pending[] = [];
	/** For a trial. */
	const setup: (() => void)[] = [];
	let timer: NodeJS.Timeout | NodeJS.Immediate | null = null;
	let dueAt = Number.POSITIVE_INFINITY;
	let isClosed = false;
	let isFlushing = false;
	let heldMs = 0;
	/** Since the last pause. */
	let heldTogetherMs = 0;
	/** Of the operations of the last group, in milliseconds. */
	let workedMs = 0;
	/** What a group costs beside its operations, in milliseconds: of the last ones, the latest most. */
	let costMs = Number.POSITIVE_INFINITY;
	let idle: (() => void)[] = [];

	const schedule = (delayMs: number) => {
		const at = performance.now() + delayMs;
		if (isFlushing || at >= dueAt) return;
		cancelTimer(timer);
		dueAt = at;
		timer = delayMs === 0 ? setImmediate(flush) : setTimeout(flush, delayMs);
	};

	const flush = () => {
		timer = null;
		dueAt = Number.POSITIVE_INFINITY;
		isFlushing = true;
		tryGroup(performance.now() + options.lockTimeoutMs, retryDelay.firstMs);
	};
	let endWait: (() => void) | undefined;
	const endLocked = () => {
		endWait?.();
		endWait = undefined;
	};

	/** Outside any transaction. */
	const checkReferences = (isOn: boolean) => db.pragma(`foreign_keys = ${isOn ? 'ON' : 'OFF'}`);

	const tryGroup = (deadline: number, delayMs: number) => {
		const asked = performance.now();
		workedMs = 0;
		const isLoad = pending[0]?.group === 'load';
		try {
			room.prepare();
			if (isLoad) checkReferences(false);
			begin.run();
		} catch (error) {
			if (isLoad) checkReferences(true);
			if (isBusy(error) && performance.now() < deadline) {
				endWait ??= options.onLocked?.();
				const jittered = delayMs * (0.5 + options.random());
				setTimeout(tryGroup, jittered, deadline, Math.min(delayMs * 2, retryDelay.maxMs));
				return;
			}
			endLocked();
			rejectAll(pending.splice(0), translateFailure(error, path));
			done();
			return;
		}
		endLocked();
		const pace = options.pace();
		const began = performance.now();
		commitGroup(pace);
		if (isLoad) checkReferences(true);
		const ended = performance.now();
		heldMs = ended - began;
		const cost = ended - asked - workedMs;
		costMs = Number.isFinite(costMs) ? costMs + (cost - costMs) / 8 : cost;
		// SQLite's lock is no queue: a process that releases it and asks again at once starves all others.
		heldTogetherMs += heldMs;
		const { pauseMs, pauseEveryMs = 0 } = pace;
		if (pauseMs === 0 || heldMs <= longGroupMs || heldTogetherMs < pauseEveryMs) return done();
		heldTogetherMs = 0;
		if (pauseEveryMs === 0) options.afterLongGroup();
		setTimeout(done, pauseMs);
	};

	const commitGroup = (pace: Pace) => {
		const succeeded: Pending[] = [];
		const failed: (() => void)[] = [];
		try {
			options.beforeGroup();
			const began = performance.now();
			runGroup(succeeded, failed, pace);
			workedMs = performance.now() - began;
			room.assertFits();
			commit.run();
		} catch (error) {
			if (db.inTransaction) db.exec('ROLLBACK');
			if (isFull(error)) room.wasFull();
			// Before the first operation: it would fail again for all waiting operations, which would never get an answer.
			const hit = succeeded.length > 0 || failed.length > 0 ? succeeded : pending.splice(0);
			rejectAll(hit, translateFailure(error, path));
			for (const reject of failed) reject();
			return;
		}
		for (const each of succeeded) each.resolve();
		for (const reject of failed) reject();
	};

	/**
	 * Throws only errors that end the transaction; the operation that raised one is then among the succeeded, to be
	 * rejected with them.
	 */
	const runGroup = (succeeded: Pending[], failed: (() => void)[], pace: Pace) => {
		const { maxGroupMs, maxGroupCosts = Number.POSITIVE_INFINITY } = pace;
		const end = performance.now() + Math.min(maxGroupMs, maxGroupCosts * costMs);
		for (const again of setup) again();
		for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
			const operation = next;
			if (operation.group !== 'shared') {
				if (succeeded.length + failed.length > 0) pending.unshift(operation);
				else runBulk(operation, succeeded);
				return;
			}
			succeeded.push(operation);
			savepoint.run();
			try {
				operation.run();
			} catch (error) {
				if (endsTransaction(error) || !db.inTransaction) throw error;
				undo.run();
				succeeded.pop();
				failed.push(() => operation.reject(translateFailure(error, path)));
			}
			release.run();
			if (performance.now() >= end) return;
		}
	};

	/** An error ends the transaction, which contains nothing else. */
	const runBulk = (operation: Pending, succeeded: Pending[]) => {
		succeeded.push(operation);
		operation.run();
	};

	const done = () => {
		isFlushing = false;
		if (pending.length > 0) schedule(0);
		else for (const wake of idle.splice(0)) wake();
	};

	return {
		write: <R>(operate: () => R, { maxDelayMs = 0, group = 'shared', isSetup = false }: WriteOptions = {}) =>
			new Promise<R>((resolve, reject) => {
				if (isClosed) return reject(new StoreError('io', `${path} is closed`));
				let result: { value: R } | null = null;
				pending.push({
					group,
					run: () => {
						result = { value: operate() };
					},
					resolve: () => {
						if (isSetup && options.isTrial) setup.push(operate);
						if (result !== null) resolve(result.value);
					},
					reject,
				});
				schedule(maxDelayMs);
			}),
		isTrial: options.isTrial ?? false,
		heldMs: () => heldMs,
		close: async () => {
			isClosed = true;
			if (pending.length === 0 && !isFlushing) return;
			await new Promise<void>((resolve) => {
				idle.push(resolve);
				schedule(0);
			});
			idle = [];
		},
	};
}

function isFull(error: unknown): boolean {
	return error instanceof StoreError ? error.code === 'disk_full' : sqliteCode(error) === 'SQLITE_FULL';
}

function cancelTimer(timer: NodeJS.Timeout | NodeJS.Immediate | null): void {
	if (timer === null) return;
	if ('refresh' in timer) clearTimeout(timer);
	else clearImmediate(timer);
}

function rejectAll(operations: readonly Pending[], error: unknown): void {
	for (const operation of operations) operation.reject(error);
}
