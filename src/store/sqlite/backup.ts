import { chmodSync, existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { codeOf, StoreError } from '../../api/errors.js';
import type { StoredErasures, WrappingKey } from '../maintenance.js';
import { findDamage, isBusy, sqliteCode, translateFailure } from './connection.js';
import { storedErasures } from './core.js';
import { fileAt, openUntouched } from './inspect.js';
import { assertOurs, schemaVersion } from './migrations.js';
import { createSql } from './sql.js';

export interface BackupOptions {
	path: string;
	into: string;
	name: string;
	signal: AbortSignal;
	onProgress: (copied: { pages: number; of: number }) => void;
}

export interface BackedUp {
	schema_version: number;
	size_bytes: number;
	lists: number;
	subscribers: number;
	messages: number;
}

const pagesAtOnce = 1_024;
const mostWords = 5;

/**
 * Copies the state that the database has at the start. Other processes keep working, but cannot truncate the log
 * meanwhile. Throws `DatabaseMissing`, `StoreError` and the signal's reason.
 */
export async function backupSqlite(options: BackupOptions): Promise<BackedUp> {
	const { path, into, name } = options;
	const file = fileAt(path);
	let db: Database.Database | null = null;
	let isRead = false;
	try {
		db = openUntouched(file);
		assertOurs(db, path);
		// SQLite's backup API starts over when another process writes. Within an open snapshot it does not, because the
		// snapshot does not see the write.
		db.exec('BEGIN');
		db.prepare('SELECT count(*) FROM sqlite_schema').get();
		isRead = true;
		await copyTo(db, options);
	} catch (error) {
		throw isRead && isOfCopy(error) ? translateFailure(error, name) : translateFailure(error, path, file);
	} finally {
		db?.close();
	}
	try {
		return await checked(into, options);
	} catch (error) {
		throw translateFailure(error, name, into);
	}
}

export function isInUse(copy: string): boolean {
	let db: Database.Database | null = null;
	try {
		db = new Database(copy, { fileMustExist: true, timeout: 0 });
		db.exec('BEGIN EXCLUSIVE; ROLLBACK');
		return false;
	} catch (error) {
		return !/^SQLITE_(NOTADB|CORRUPT)/.test(sqliteCode(error) ?? '');
	} finally {
		db?.close();
	}
}

/** The database is only read, so these errors concern the copy. */
function isOfCopy(error: unknown): boolean {
	return /^SQLITE_(FULL|READONLY|CANTOPEN|IOERR_WRITE)/.test(sqliteCode(error) ?? '');
}

async function copyTo(db: Database.Database, { into, signal, onProgress }: BackupOptions): Promise<void> {
	await db.backup(into, {
		progress: ({ totalPages, remainingPages }) => {
			signal.throwIfAborted();
			onProgress({ pages: totalPages - remainingPages, of: totalPages });
			return pagesAtOnce;
		},
	});
	signal.throwIfAborted();
	db.exec('COMMIT');
}

async function checked(into: string, { name, signal }: BackupOptions): Promise<BackedUp> {
	chmodSync(into, 0o600);
	const db = new Database(into, { fileMustExist: true });
	try {
		db.pragma('trusted_schema = OFF');
		db.pragma('locking_mode = EXCLUSIVE');
		db.pragma('journal_mode = DELETE');
		const damage: string[] = [];
		for (const table of tablesOf(db)) {
			signal.throwIfAborted();
			damage.push(...findDamage(db, { path: name, how: 'integrity_check', most: `'${table}'` }));
			await new Promise((resolve) => setImmediate(resolve));
		}
		if (damage.length > 0)
			throw new StoreError(
				'io',
				`${name} was not made: the database is damaged (${damage.slice(0, mostWords).join('; ')})`,
			);
		const pages = Number(db.pragma('page_count', { simple: true }));
		const count = (table: string) => Number(db.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
		return {
			schema_version: Number(db.pragma('user_version', { simple: true })),
			size_bytes: pages * Number(db.pragma('page_size', { simple: true })),
			lists: count('lists'),
			subscribers: count('subscribers'),
			messages: count('messages'),
		};
	} finally {
		db.close();
	}
}

function tablesOf(db: Database.Database): string[] {
	return db
		.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
		.pluck()
		.all()
		.filter((name) => /^\w+$/.test(name));
}

/**
 * Locks a database while a copy replaces it: no process has it open or can open it. The old file stays under another
 * name.
 */
export interface OutOfUse {
	keepAs(name: string): void;
	erasures(keys: readonly WrappingKey[]): StoredErasures | null;
	giveUp(): void;
	release(): void;
}

const logs = ['-wal', '-journal', '-shm'];

const waitMs = 2_000;

/**
 * Renames the log too, because SQLite would apply the old log to the new file. Throws "busy_elsewhere" if a process has
 * the database open.
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

/** Closing the database would checkpoint the log too, but would hide a full disk. */
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

/** Removes a second hard link to `file` that a killed restore left. A write would change the file under both names. */
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
		// In exclusive mode, BEGIN fails while another connection is open.
		db.pragma('locking_mode = EXCLUSIVE');
		db.exec('BEGIN EXCLUSIVE; ROLLBACK');
	} catch (error) {
		throw isBusy(error) ? openElsewhere(file, error) : translateFailure(error, file);
	} finally {
		db.close();
	}
}

function openElsewhere(file: string, cause: unknown): StoreError {
	const text = `another process has ${file} open ("fuser -v" shows which); nothing was changed`;
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
