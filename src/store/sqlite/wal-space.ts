/**
 * Reserves room on the disk for copying the log back. A log that fills the disk could never be copied back, and would
 * block all writes.
 */

import { statSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { StoreError } from '../../api/errors.js';
import { memoryPath } from './connection.js';
import { freeBytes, sqliteCode } from './failures.js';

const mebibyte = 1_048_576;
/** With less room the log is copied back after each transaction, so that it holds only one when the disk is full. */
const spareBytes = 512 * mebibyte;
const smallBytes = mebibyte / 4;
const heldBytes = 16 * mebibyte;
const mostTries = 50;
const pauseMs = 20;

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

	/** Call before the commit. Throws `StoreError` "disk_full" where the log would not fit back. */
	assertFits(): void {
		if (!this.#isScarce) return;
		const growth = (this.#pages.get() ?? 0) * this.#pageSize - sizeOf(this.#path);
		if (growth <= smallBytes || freeBytes(this.#path) >= growth + Math.min(growth, heldBytes)) return;
		throw new StoreError('disk_full', `too little room left on the disk of ${this.#path}`);
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
