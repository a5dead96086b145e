/**
 * Groups writes: operations of one tick share a transaction and a disk sync, each in its own savepoint. A promise
 * resolves after the commit, so an acknowledged write survives a power cut.
 */

import { statSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { StoreError } from '../../api/errors.js';
import {
	endsTransaction,
	freeBytes,
	isBusy,
	memoryPath,
	sqliteCode,
	translateFailure,
} from './connection.js';

interface WriteOptions {
	maxDelayMs?: number;
	/**
	 * `bulk`: the operation is alone in its group and needs no savepoint. With a savepoint, SQLite would copy each
	 * changed page to memory. For 100,000 unordered rows, that is most of an index. `load`: like `bulk`, but without
	 * foreign keys, so that a statement can insert many rows. The operation must check its references itself.
	 */
	group?: 'shared' | 'bulk' | 'load';
	isSetup?: boolean;
}

interface WriterOptions {
	db: Database.Database;
	path: string;
	isTrial?: boolean;
	lockTimeoutMs: number;
	onLocked?: (() => () => void) | undefined;
	pace: () => Pace;
	beforeGroup: () => void;
	afterLongGroup?: () => void;
}

export interface Pace {
	maxGroupMs: number;
	/** A group may take this many times as long as BEGIN and COMMIT. Other operations wait for the next group. */
	maxGroupCosts?: number;
	pauseMs: number;
	pauseEveryMs?: number;
}

interface Pending {
	group: 'shared' | 'bulk' | 'load';
	run(): void;
	resolve(): void;
	reject(error: unknown): void;
}

/** Shorter than the pause of another process, so that a retry falls into that pause. */
const retryDelay = { firstMs: 2, maxMs: 4 };
const longGroupMs = 20;

export class Writer {
	readonly isTrial: boolean;
	readonly #options: WriterOptions;
	readonly #db: Database.Database;
	readonly #statements;
	readonly #room: LogRoom;
	readonly #pending: Pending[] = [];
	readonly #setup: (() => void)[] = [];
	#timer: NodeJS.Timeout | NodeJS.Immediate | null = null;
	#dueAt = Number.POSITIVE_INFINITY;
	#isClosed = false;
	#isFlushing = false;
	#heldMs = 0;
	#heldTogetherMs = 0;
	#workedMs = 0;
	#costMs = Number.POSITIVE_INFINITY;
	#endWait: (() => void) | undefined;
	#onIdle: (() => void) | null = null;

	constructor(options: WriterOptions) {
		const { db, path, isTrial = false } = options;
		this.#options = options;
		this.#db = db;
		this.isTrial = isTrial;
		this.#room = new LogRoom(db, path);
		this.#statements = {
			begin: db.prepare('BEGIN IMMEDIATE'),
			commit: db.prepare(isTrial ? 'ROLLBACK' : 'COMMIT'),
			savepoint: db.prepare('SAVEPOINT operation'),
			release: db.prepare('RELEASE operation'),
			undo: db.prepare('ROLLBACK TO operation'),
		};
	}

	write<R>(
		operate: () => R,
		{ maxDelayMs = 0, group = 'shared', isSetup = false }: WriteOptions = {},
	): Promise<R> {
		return new Promise<R>((resolve, reject) => {
			if (this.#isClosed) return reject(new StoreError('io', `${this.#options.path} is closed`));
			let result: { value: R } | null = null;
			this.#pending.push({
				group,
				run: () => {
					result = { value: operate() };
				},
				resolve: () => {
					if (isSetup && this.isTrial) this.#setup.push(operate);
					if (result !== null) resolve(result.value);
				},
				reject,
			});
			this.#schedule(maxDelayMs);
		});
	}

	heldMs(): number {
		return this.#heldMs;
	}

	async close(): Promise<void> {
		this.#isClosed = true;
		if (this.#pending.length === 0 && !this.#isFlushing) return;
		await new Promise<void>((resolve) => {
			this.#onIdle = resolve;
			this.#schedule(0);
		});
	}

	#schedule(delayMs: number): void {
		const at = performance.now() + delayMs;
		if (this.#isFlushing || at >= this.#dueAt) return;
		cancelTimer(this.#timer);
		this.#dueAt = at;
		const flush = () => {
			this.#timer = null;
			this.#dueAt = Number.POSITIVE_INFINITY;
			this.#isFlushing = true;
			this.#tryGroup(performance.now() + this.#options.lockTimeoutMs, retryDelay.firstMs);
		};
		this.#timer = delayMs === 0 ? setImmediate(flush) : setTimeout(flush, delayMs);
	}

	#tryGroup(deadline: number, delayMs: number): void {
		const options = this.#options;
		const db = this.#db;
		const asked = performance.now();
		this.#workedMs = 0;
		const isLoad = this.#pending[0]?.group === 'load';
		try {
			this.#room.prepare();
			if (isLoad) db.pragma('foreign_keys = OFF');
			this.#statements.begin.run();
		} catch (error) {
			if (isLoad) db.pragma('foreign_keys = ON');
			if (isBusy(error) && performance.now() < deadline) {
				this.#endWait ??= options.onLocked?.();
				const jittered = delayMs * (0.5 + Math.random());
				setTimeout(() => this.#tryGroup(deadline, Math.min(delayMs * 2, retryDelay.maxMs)), jittered);
				return;
			}
			this.#endLocked();
			rejectAll(this.#pending.splice(0), translateFailure(error, options.path));
			this.#done();
			return;
		}
		this.#endLocked();
		const pace = options.pace();
		const began = performance.now();
		this.#commitGroup(pace);
		if (isLoad) db.pragma('foreign_keys = ON');
		const ended = performance.now();
		this.#heldMs = ended - began;
		const cost = ended - asked - this.#workedMs;
		this.#costMs = Number.isFinite(this.#costMs) ? this.#costMs + (cost - this.#costMs) / 8 : cost;
		// SQLite's lock has no queue, so a process that takes it again at once starves the others.
		this.#heldTogetherMs += this.#heldMs;
		const { pauseMs, pauseEveryMs = 0 } = pace;
		if (pauseMs === 0 || this.#heldMs <= longGroupMs || this.#heldTogetherMs < pauseEveryMs) {
			this.#done();
			return;
		}
		this.#heldTogetherMs = 0;
		if (pauseEveryMs === 0) options.afterLongGroup?.();
		setTimeout(() => this.#done(), pauseMs);
	}

	#commitGroup(pace: Pace): void {
		const succeeded: Pending[] = [];
		const failed: (() => void)[] = [];
		try {
			this.#options.beforeGroup();
			const began = performance.now();
			this.#runGroup(succeeded, failed, pace);
			this.#workedMs = performance.now() - began;
			this.#room.assertFits();
			this.#statements.commit.run();
		} catch (error) {
			if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
			if (isFull(error)) this.#room.wasFull();
			// An error before the first operation would recur in the next group, so reject all operations.
			const hit = succeeded.length > 0 || failed.length > 0 ? succeeded : this.#pending.splice(0);
			rejectAll(hit, translateFailure(error, this.#options.path));
			for (const reject of failed) reject();
			return;
		}
		for (const each of succeeded) each.resolve();
		for (const reject of failed) reject();
	}

	/** Throws only errors that end the transaction. `succeeded` then also has the operation that failed. */
	#runGroup(succeeded: Pending[], failed: (() => void)[], pace: Pace): void {
		const { maxGroupMs, maxGroupCosts = Number.POSITIVE_INFINITY } = pace;
		const { savepoint, release, undo } = this.#statements;
		const pending = this.#pending;
		const end = performance.now() + Math.min(maxGroupMs, maxGroupCosts * this.#costMs);
		for (const again of this.#setup) again();
		for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
			const operation = next;
			if (operation.group !== 'shared') {
				if (succeeded.length + failed.length > 0) {
					pending.unshift(operation);
					return;
				}
				succeeded.push(operation);
				operation.run();
				return;
			}
			succeeded.push(operation);
			savepoint.run();
			try {
				operation.run();
			} catch (error) {
				if (endsTransaction(error) || !this.#db.inTransaction) throw error;
				undo.run();
				succeeded.pop();
				failed.push(() => operation.reject(translateFailure(error, this.#options.path)));
			}
			release.run();
			if (performance.now() >= end) return;
		}
	}

	#done(): void {
		this.#isFlushing = false;
		if (this.#pending.length > 0) this.#schedule(0);
		else this.#onIdle?.();
	}

	#endLocked(): void {
		this.#endWait?.();
		this.#endWait = undefined;
	}
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

const mebibyte = 1_048_576;
/** If less space than this is free, each group begins with a checkpoint, so that the log has at most one group. */
const spareBytes = 512 * mebibyte;
const smallBytes = mebibyte / 4;
const heldBytes = 16 * mebibyte;
const mostTries = 50;
const pauseMs = 20;

/**
 * Keeps enough space free for a checkpoint. If the log filled the disk, SQLite could never checkpoint it, and all
 * writes would fail.
 */
class LogRoom {
	readonly #db: Database.Database;
	readonly #path: string;
	readonly #pages: Database.Statement<[], number>;
	readonly #pageSize: number;
	#isFull = false;
	#isScarce = false;

	constructor(db: Database.Database, path: string) {
		this.#db = db;
		this.#path = path;
		this.#pages = db.prepare<[], number>('PRAGMA page_count').pluck();
		this.#pageSize = Number(db.pragma('page_size', { simple: true }));
	}

	prepare(): void {
		if (this.#path === memoryPath) return;
		const log = sizeOf(`${this.#path}-wal`);
		this.#isScarce = freeBytes(this.#path) < log + spareBytes;
		if (log === 0 || !(this.#isScarce || this.#isFull)) return;
		this.#isFull = false;
		this.#copyBack();
	}

	/** Call it before COMMIT. Throws `StoreError` "disk_full" if a checkpoint of the group would fill the disk. */
	assertFits(): void {
		if (!this.#isScarce) return;
		const growth = (this.#pages.get() ?? 0) * this.#pageSize - sizeOf(this.#path);
		if (growth <= smallBytes || freeBytes(this.#path) >= growth + Math.min(growth, heldBytes)) return;
		throw new StoreError('disk_full', `not enough free space on the disk of ${this.#path}`);
	}

	wasFull(): void {
		this.#isFull = true;
		this.#copyBack();
	}

	#copyBack(): void {
		try {
			for (let tries = 1; tries <= mostTries; tries += 1) {
				if (this.#db.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) !== 1) return;
				Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
			}
		} catch (error) {
			if (sqliteCode(error) === null) throw error;
		}
	}
}

export function sizeOf(path: string): number {
	return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
