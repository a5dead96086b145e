/**
 * Groups writes: operations that come within one tick share one transaction and one wait for the disk, each in its own
 * savepoint. A promise resolves after the commit, so what was acknowledged survives a power cut.
 */
import type Database from 'better-sqlite3';
import { StoreError } from '../errors.js';
import { endsTransaction, isBusy, translateFailure } from './failures.js';

export interface Writer {
	/** Runs `operate` in the next group. Rejects with what it throws, or with what made the whole group fail. */
	write<R>(operate: () => R, options?: WriteOptions): Promise<R>;
	/** How long the last group held the lock, its commit included, in milliseconds. */
	heldMs(): number;
	/** Commits what waits, then refuses. */
	close(): Promise<void>;
}

export interface WriteOptions {
	/** How long it may wait for company; 0 when absent. */
	maxDelayMs?: number;
	/**
	 * `bulk`: a group of its own, so that it needs no savepoint. Under one SQLite keeps a copy in memory of every page
	 * before its first change, which are most pages of an index where 100,000 rows come in no order. `shared` when absent.
	 */
	group?: 'shared' | 'bulk';
}

export interface WriterOptions {
	db: Database.Database;
	path: string;
	/** How long a group tries to get the write lock before `StoreError` "locked". */
	lockTimeoutMs: number;
	/** How groups share the lock with other processes; asked before each. */
	pace: () => Pace;
	/** Called inside each group, before its first operation. */
	beforeGroup: () => void;
	/** Called after a group that kept others waiting, when the lock is free and before the pause. */
	afterLongGroup: () => void;
	/** 0 ≤ n < 1, for the jitter between tries. */
	random: () => number;
}

export interface Pace {
	/** How long a group may go on taking operations. */
	maxGroupMs: number;
	/** After a group that took longer than a request may wait, how long nobody here asks for the lock. */
	pauseMs: number;
}

interface Pending {
	isBulk: boolean;
	run(): void;
	resolve(): void;
	reject(error: unknown): void;
}

/** Between tries, besides what SQLite itself waits: never longer than others pause, or they would be missed. */
const retryDelay = { firstMs: 2, maxMs: 4 };
/** A group that took longer has kept others waiting. */
const longGroupMs = 20;

/**
 * One for a connection, closed before it. `operate` must be synchronous: it runs within the transaction of its group.
 */
export function createWriter(options: WriterOptions): Writer {
	const { db, path } = options;
	const begin = db.prepare('BEGIN IMMEDIATE');
	const commit = db.prepare('COMMIT');
	const savepoint = db.prepare('SAVEPOINT operation');
	const release = db.prepare('RELEASE operation');
	const undo = db.prepare('ROLLBACK TO operation');
	const pending: Pending[] = [];
	let timer: NodeJS.Timeout | NodeJS.Immediate | null = null;
	let dueAt = Number.POSITIVE_INFINITY;
	let isClosed = false;
	let isFlushing = false;
	let heldMs = 0;
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

	const tryGroup = (deadline: number, delayMs: number) => {
		try {
			begin.run();
		} catch (error) {
			if (isBusy(error) && performance.now() < deadline) {
				const jittered = delayMs * (0.5 + options.random());
				setTimeout(tryGroup, jittered, deadline, Math.min(delayMs * 2, retryDelay.maxMs));
				return;
			}
			rejectAll(pending.splice(0), translateFailure(error, path));
			done();
			return;
		}
		const pace = options.pace();
		const began = performance.now();
		commitGroup(pace);
		heldMs = performance.now() - began;
		// SQLite's lock is no queue: who lets it go and asks again at once starves everybody who polls.
		if (pace.pauseMs === 0 || heldMs <= longGroupMs) return done();
		options.afterLongGroup();
		setTimeout(done, pace.pauseMs);
	};

	const commitGroup = (pace: Pace) => {
		const succeeded: Pending[] = [];
		const failed: (() => void)[] = [];
		try {
			options.beforeGroup();
			runGroup(succeeded, failed, pace);
			commit.run();
		} catch (error) {
			if (db.inTransaction) db.exec('ROLLBACK');
			// Before the first operation: it would fail again for all that wait, and never be answered.
			const hit = succeeded.length > 0 || failed.length > 0 ? succeeded : pending.splice(0);
			rejectAll(hit, translateFailure(error, path));
			for (const reject of failed) reject();
			return;
		}
		for (const each of succeeded) each.resolve();
		for (const reject of failed) reject();
	};

	/** Throws only what ends the transaction; the operation it hit is then among the succeeded, to be rejected with them. */
	const runGroup = (succeeded: Pending[], failed: (() => void)[], pace: Pace) => {
		const end = performance.now() + pace.maxGroupMs;
		for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
			const operation = next;
			if (operation.isBulk) {
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

	/** What it throws ends the transaction, in which there is nothing else. */
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
		write: <R>(operate: () => R, { maxDelayMs = 0, group = 'shared' }: WriteOptions = {}) =>
			new Promise<R>((resolve, reject) => {
				if (isClosed) return reject(new StoreError('io', `${path} is closed`));
				let result: { value: R } | null = null;
				pending.push({
					isBulk: group === 'bulk',
					run: () => {
						result = { value: operate() };
					},
					resolve: () => {
						if (result !== null) resolve(result.value);
					},
					reject,
				});
				schedule(maxDelayMs);
			}),
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

function cancelTimer(timer: NodeJS.Timeout | NodeJS.Immediate | null): void {
	if (timer === null) return;
	if ('refresh' in timer) clearTimeout(timer);
	else clearImmediate(timer);
}

function rejectAll(operations: readonly Pending[], error: unknown): void {
	for (const operation of operations) operation.reject(error);
}
