import { chmodSync, closeSync, existsSync, mkdirSync, openSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { assertNotHome, codeOf, StoreError, systemReason } from '../../api/errors.js';
import { DatabaseMissing, DatabaseUnwritable } from '../errors.js';
import { isMissingFile } from '../url.js';
import { isBusy, translateFailure } from './failures.js';
import { assertOurs } from './migrations.js';

export const memoryPath = ':memory:';

export type ConnectionRole = 'writer' | 'reader';

export interface ConnectionOptions {
	path: string;
	role: ConnectionRole;
	mode: 'create' | 'existing';
	busyTimeoutMs: number;
	onCreated?: (() => void) | undefined;
}

export function openConnection(options: ConnectionOptions): Database.Database {
	prepareFile(options);
	let db: Database.Database | null = null;
	try {
		db = new Database(options.path, {
			fileMustExist: options.path !== memoryPath,
			timeout: options.busyTimeoutMs,
		});
		const connection = db;
		whileBusy(options.busyTimeoutMs, () => setPragmas(connection, options));
		return db;
	} catch (error) {
		db?.close();
		throw translateFailure(error, options.path);
	}
}

/**
 * Two processes that open a new file both switch it to the log, and SQLite answers "busy" at once, whatever
 * `busy_timeout` says.
 */
function whileBusy(timeoutMs: number, attempt: () => void): void {
	const pauseMs = 20;
	const sleeper = new Int32Array(new SharedArrayBuffer(4));
	for (let waitedMs = 0; ; waitedMs += pauseMs) {
		try {
			attempt();
			return;
		} catch (error) {
			if (!isBusy(error) || waitedMs >= timeoutMs) throw error;
			Atomics.wait(sleeper, 0, 0, pauseMs);
		}
	}
}

/**
 * Creates the file before SQLite would, with 0600 whatever the umask; SQLite gives -wal and -shm the same
 * permissions.
 */
function prepareFile({ path, mode, onCreated }: ConnectionOptions): void {
	if (path === memoryPath) return;
	const found = lookAt(path);
	if (found !== undefined) {
		if (found.isDirectory()) throw new StoreError('not_a_database', `${path} is a directory`);
		if (found.isFile() && found.size === 0 && (found.mode & 0o077) !== 0) closeToOthers(path);
		return;
	}
	if (mode === 'existing') throw new DatabaseMissing(path);
	try {
		makeFolder(dirname(path));
		// 'x' keeps the data of another process that creates it at the same moment.
		closeSync(openSync(path, 'ax', 0o600));
		chmodSync(path, 0o600);
		onCreated?.();
	} catch (error) {
		if (codeOf(error) === 'EEXIST' && existsSync(path)) return;
		const reason = `cannot create ${path}: ${systemReason(error)}`;
		throw new DatabaseUnwritable('io', path, reason, { cause: error });
	}
}

export function lookAt(path: string): Stats | undefined {
	try {
		return statSync(path);
	} catch (error) {
		if (isMissingFile(path)) return undefined;
		const isAbsent = codeOf(error) === 'ENOENT';
		const reason = isAbsent ? 'it is behind a link that leads nowhere' : systemReason(error);
		throw new StoreError('io', `${path} cannot be looked at: ${reason}`, { cause: error });
	}
}

function closeToOthers(path: string): void {
	try {
		chmodSync(path, 0o600);
	} catch (cause) {
		const reason = `${path} is an empty file that others may read, and belongs to another user`;
		throw new StoreError('io', reason, { cause });
	}
}

/** Node's recursive mkdir never returns where a folder cannot be created (/proc). */
export function makeFolder(folder: string): void {
	if (existsSync(folder)) return;
	assertNotHome(folder);
	makeFolder(dirname(folder));
	try {
		mkdirSync(folder, { mode: 0o700 });
	} catch (error) {
		if (!existsSync(folder)) throw error;
		return;
	}
	chmodSync(folder, 0o700);
}

function setPragmas(db: Database.Database, { path, role, busyTimeoutMs }: ConnectionOptions): void {
	db.pragma(`busy_timeout = ${busyTimeoutMs}`);
	db.pragma('trusted_schema = OFF');
	// Comes before the first pragma that writes: the switch to the log would stay in a foreign file.
	assertOurs(db, path);
	// Only a file without pages accepts a page size. Imports were faster with 8 KiB than with 4 or 16.
	db.pragma('page_size = 8192');
	if (db.pragma('page_count', { simple: true }) === 0) db.pragma('auto_vacuum = INCREMENTAL');
	const journal = db.pragma('journal_mode = WAL', { simple: true });
	if (path !== memoryPath && journal !== 'wal') {
		throw new StoreError('io', `${path}: the write-ahead log is not available here (a network disk?)`);
	}
	// Switching to the log sets NORMAL, at which a power cut may lose a commit.
	db.pragma('synchronous = FULL');
	if (db.pragma('synchronous', { simple: true }) !== 2) {
		throw new StoreError('io', `${path}: SQLite does not wait for the disk`);
	}
	db.pragma('secure_delete = FAST');
	db.pragma('foreign_keys = ON');
	db.pragma('cache_size = -16384');
	db.pragma('mmap_size = 0');
	db.pragma('journal_size_limit = 67108864');
	db.pragma('temp_store = MEMORY');
	if (role === 'reader') db.pragma('query_only = ON');
}
