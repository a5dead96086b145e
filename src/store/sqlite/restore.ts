/**
 * Takes a database out of use while a copy replaces it: no process has it open, none can open it, and it stays under
 * another name.
 */

import { existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { codeOf, StoreError } from '../../api/errors.js';
import type { WrappingKey } from '../keys.js';
import type { StoredErasures } from '../maintenance.js';
import { storedErasures } from './core.js';
import { isBusy, sqliteCode, translateFailure } from './failures.js';
import { assertOurs, schemaVersion } from './migrations.js';
import { createSql } from './sql.js';

export interface OutOfUse {
	keepAs(name: string): void;
	erasures(keys: readonly WrappingKey[]): StoredErasures | null;
	giveUp(): void;
	release(): void;
}

const logs = ['-wal', '-journal', '-shm'];

const waitMs = 2_000;

/**
 * The log of a damaged or missing database is kept too: SQLite would take it for that of the new one. Throws
 * "busy_elsewhere" where a process has it open.
 */
export function takeOutOfUse(file: string, state: 'sound' | 'damaged' | 'missing'): OutOfUse {
	const db = state === 'sound' ? lockAlone(file) : null;
	const undo: (() => void)[] = [];
	return {
		keepAs: (name) => {
			for (const suffix of logs) {
				if (!existsSync(file + suffix)) continue;
				renameSync(file + suffix, name + suffix);
				undo.unshift(() => renameSync(name + suffix, file + suffix));
			}
			if (existsSync(file)) undo.unshift(secondName(file, name));
		},
		erasures: (keys) => {
			if (db === null || db.pragma('user_version', { simple: true }) !== schemaVersion) return null;
			return storedErasures(createSql(db, keys));
		},
		giveUp: () => {
			for (const step of undo.splice(0)) step();
		},
		release: () => db?.close(),
	};
}

export function forgetProcesses(copy: string, name: string): void {
	within(copy, name, (db) => void db.exec('DELETE FROM processes'));
}

/** Closing would do it too, but silently where the disk is full. */
export function closeLog(copy: string, name: string): void {
	within(copy, name, (db) => void db.pragma('wal_checkpoint(TRUNCATE)'));
}

function within(copy: string, name: string, change: (db: Database.Database) => void): void {
	const db = new Database(copy, { fileMustExist: true });
	try {
		db.pragma('synchronous = FULL');
		change(db);
	} catch (error) {
		throw translateFailure(error, name, copy);
	} finally {
		db.close();
	}
}

/** Removes names of a killed restore for a database that is still in use: writing to it would change both. */
export async function removeSecondNames(file: string, prefix: string): Promise<void> {
	const own = statSync(file, { throwIfNoEntry: false });
	if (own === undefined || own.nlink < 2) return;
	for (const name of await readdir(dirname(file))) {
		if (!name.startsWith(`${basename(file)}${prefix}`)) continue;
		const path = join(dirname(file), name);
		const found = statSync(path, { throwIfNoEntry: false });
		if (found?.ino === own.ino && found.dev === own.dev) rmSync(path);
	}
}

export function lockAlone(file: string, marked: { mayBeMarked?: boolean } = {}): Database.Database | null {
	const db = new Database(file, { fileMustExist: true, timeout: waitMs });
	try {
		assertOurs(db, file, marked);
		db.pragma('journal_mode = DELETE');
		db.exec('BEGIN EXCLUSIVE');
		return db;
	} catch (error) {
		db.close();
		if (isBusy(error)) throw openElsewhere(file, error);
		if (/^SQLITE_(NOTADB|CORRUPT)/.test(sqliteCode(error) ?? '')) return null;
		throw translateFailure(error, file);
	}
}

export function assertAlone(file: string): void {
	const db = new Database(file, { fileMustExist: true, timeout: waitMs });
	try {
		// An exclusive connection begins only where no other is open.
		db.pragma('locking_mode = EXCLUSIVE');
		db.exec('BEGIN EXCLUSIVE; ROLLBACK');
	} catch (error) {
		throw isBusy(error) ? openElsewhere(file, error) : translateFailure(error, file);
	} finally {
		db.close();
	}
}

function openElsewhere(file: string, cause: unknown): StoreError {
	const text = `another process has ${file} open ("fuser -v" on it says which); nothing was changed`;
	return new StoreError('busy_elsewhere', text, { cause });
}

export function secondName(file: string, name: string): () => void {
	try {
		linkSync(file, name);
		return () => rmSync(name, { force: true });
	} catch (error) {
		if (codeOf(error) === 'EEXIST') throw error;
		renameSync(file, name);
		return () => renameSync(name, file);
	}
}
