/**
 * Reserves room on the disk for copying the log back. The log takes the very room that the file needs to grow by its
 * content. A log that fills the disk can never be copied back, and blocks all writes until that much room is freed.
 */

import { statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type Database from 'better-sqlite3';
import { StoreError } from '../../api/errors.js';
import { memoryPath } from './connection.js';
import { sqliteCode } from './failures.js';

const mebibyte = 1_048_576;
/**
 * Free room besides a second copy of the log. With less, the log is copied back after each transaction, so that it
 * holds only one transaction when another program fills the disk.
 */
const spareBytes = 512 * mebibyte;
/** A smaller growth of the file is always tried: there is room for it when the next MiB is freed. */
const smallBytes = mebibyte / 4;
/** Pages of a transaction that SQLite still holds in memory: the size of its cache. */
const heldBytes = 16 * mebibyte;
/** While another connection copies it back, SQLite says at once that it is busy: so often, 20 ms apart. */
const mostTries = 50;
const pauseMs = 20;

/** For one connection. Where a disk does not report its free room, nothing is reserved. */
export class LogRoom {
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

	/** Within a transaction before its commit. Throws `StoreError` "disk_full" where the log would not fit back. */
	assertFits(): void {
		if (!this.#isScarce) return;
		const growth = (this.#pages.get() ?? 0) * this.#pageSize - sizeOf(this.#path);
		if (growth <= smallBytes || freeBytes(this.#path) >= growth + Math.min(growth, heldBytes)) return;
		throw new StoreError('disk_full', `too little room left on the disk of ${this.#path}`);
	}

	/** The disk was full: the next `prepare` copies the log back first, whatever the disk reports. */
	wasFull(): void {
		this.#isFull = true;
		// At once: a failed transaction's content in the log keeps others from writing as well.
		this.#copyBack();
	}

	// A failure loses nothing: the log stays, and is tried again before the next transaction.
	#copyBack(): void {
		try {
			for (let tries = 1; tries <= mostTries; tries += 1) {
				// The first column is whether it was kept from it.
				if (this.#db.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) !== 1) return;
				Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
			}
		} catch (error) {
			if (sqliteCode(error) === null) throw error;
		}
	}
}

function freeBytes(path: string): number {
	try {
		const { bavail, bsize } = statfsSync(dirname(path));
		return bavail * bsize;
	} catch {
		return Number.POSITIVE_INFINITY;
	}
}

function sizeOf(path: string): number {
	return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
