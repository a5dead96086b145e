import { chmodSync } from 'node:fs';
import Database from 'better-sqlite3';
import { StoreError } from '../../api/errors.js';
import { findDamage, sqliteCode, translateFailure } from './failures.js';
import { fileAt, openUntouched } from './inspect.js';
import { assertOurs } from './migrations.js';

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
 * The copy shows the moment at which it begins. It blocks no other process; only the log cannot be cut off meanwhile.
 * Throws `DatabaseMissing`, `StoreError` and the signal's reason.
 */
export async function backupSqlite(options: BackupOptions): Promise<BackedUp> {
	const { path, into, name } = options;
	const file = fileAt(path);
	let db: Database.Database | null = null;
	let isRead = false;
	try {
		db = openUntouched(file);
		assertOurs(db, path);
		// SQLite's own copying starts over whenever another process writes. An open snapshot does not see their writes.
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

/** A full disk is an error of the copy, since the database is only read. */
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
