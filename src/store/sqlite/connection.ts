import {
	accessSync,
	chmodSync,
	closeSync,
	constants,
	existsSync,
	mkdirSync,
	openSync,
	type Stats,
	statfsSync,
	statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { assertNotHome, codeOf, StoreError, systemReason } from '../../api/errors.js';
import { DatabaseMissing, DatabaseUnwritable } from '../errors.js';
import { isMissingFile } from '../url.js';
import { assertOurs } from './migrations.js';

export const memoryPath = ':memory:';

type ConnectionRole = 'writer' | 'reader';

interface ConnectionOptions {
	path: string;
	role: ConnectionRole;
	mode: 'create' | 'existing';
	busyTimeoutMs: number;
	mayBeMarked?: boolean;
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

/** Two processes that open a new file both switch it to WAL; one gets "busy" at once despite `busy_timeout`. */
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
 * Creates the file before SQLite does, so that the file has mode 0600 under any umask. SQLite gives -wal and -shm the
 * same mode.
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
		const reason = isAbsent ? 'a symbolic link in its path is broken' : systemReason(error);
		throw new StoreError('io', `cannot open ${path}: ${reason}`, { cause: error });
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

/** Avoids Node's recursive mkdir, which never returns for some paths, such as in /proc. */
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

function setPragmas(
	db: Database.Database,
	{ path, role, busyTimeoutMs, mayBeMarked = false }: ConnectionOptions,
): void {
	db.pragma(`busy_timeout = ${busyTimeoutMs}`);
	db.pragma('trusted_schema = OFF');
	// Check before the first pragma that writes: switching to WAL would change another program's file.
	assertOurs(db, path, { mayBeMarked });
	// SQLite accepts a page size only for an empty file. Imports were faster with 8 KiB than with 4 or 16.
	db.pragma('page_size = 8192');
	if (db.pragma('page_count', { simple: true }) === 0) db.pragma('auto_vacuum = INCREMENTAL');
	const journal = db.pragma('journal_mode = WAL', { simple: true });
	if (path !== memoryPath && journal !== 'wal') {
		throw new StoreError('io', `${path}: SQLite's write-ahead log does not work here (a network disk?)`);
	}
	// Switching to WAL sets NORMAL. With NORMAL, a power cut may lose a commit.
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

export function sqliteCode(error: unknown): string | null {
	return error instanceof Database.SqliteError ? error.code : null;
}

export function isBusy(error: unknown): boolean {
	const code = sqliteCode(error);
	return code?.startsWith('SQLITE_BUSY') === true || code?.startsWith('SQLITE_LOCKED') === true;
}

/** True if SQLite may have rolled back the whole transaction, savepoints included. */
export function endsTransaction(error: unknown): boolean {
	const code = sqliteCode(error);
	return code !== null && /^SQLITE_(FULL|IOERR|NOMEM|CORRUPT|READONLY|CANTOPEN|INTERRUPT)/.test(code);
}

export function translateFailure(error: unknown, path: string, file = path): unknown {
	const code = sqliteCode(error);
	if (code === null) return error;
	if (isBusy(error)) {
		return new StoreError('locked', `${path} is locked by another process; try again`, { cause: error });
	}
	if (
		code.startsWith('SQLITE_FULL') ||
		(code === 'SQLITE_IOERR_SHMSIZE' && freeBytes(path) < logIndexBytes)
	) {
		return new StoreError('disk_full', `no space left on the disk of ${path}`, { cause: error });
	}
	if (code === 'SQLITE_NOTADB') {
		return new StoreError('not_a_database', `${path} is not a mailctl database`, { cause: error });
	}
	if (!endsTransaction(error)) return error;
	if (code.startsWith('SQLITE_READONLY') || (code.startsWith('SQLITE_CANTOPEN') && isReadOnly(file)))
		return new DatabaseUnwritable('read_only', file, `${path}: ${readOnlyReason(file)}`, { cause: error });
	const fault = code.startsWith('SQLITE_CORRUPT') ? 'damaged' : 'io';
	return new StoreError(fault, `${path}: ${reasonOf(code)}`, { cause: error });
}

/** SQLite's WAL index grows in steps of 32 KiB. If a step fails and less space than this is free, the disk is full. */
const logIndexBytes = 32_768;

export function freeBytes(path: string): number {
	try {
		const { bavail, bsize } = statfsSync(dirname(path));
		return bavail * bsize;
	} catch {
		return Number.POSITIVE_INFINITY;
	}
}

/** In a read-only folder, SQLite cannot create its log, and reports only that it cannot open the file. */
function isReadOnly(file: string): boolean {
	const { R_OK, W_OK } = constants;
	return allows(file, R_OK) && !(allows(file, W_OK) && allows(dirname(file), W_OK));
}

function readOnlyReason(file: string): string {
	const { W_OK } = constants;
	return allows(file, W_OK) && !allows(dirname(file), W_OK)
		? 'this user may not write to its folder'
		: 'the database file is read-only';
}

export function allows(path: string, mode: number): boolean {
	try {
		accessSync(path, mode);
		return true;
	} catch {
		return false;
	}
}

function reasonOf(code: string): string {
	// SQLite sometimes reports a read error of the disk as damage.
	if (code.startsWith('SQLITE_CORRUPT'))
		return 'it seems damaged: "mailctl doctor --only database --full" checks the file and the disk';
	if (code.startsWith('SQLITE_CANTOPEN')) return 'the database file cannot be opened; check its permissions';
	if (code.startsWith('SQLITE_NOMEM')) return 'out of memory';
	return `the disk failed to read or write it (${code})`;
}

/**
 * Returns SQLite's messages about damage. Throws `StoreError` if the disk failed. SQLite reports a disk failure only in
 * a text such as `error code=266`. The lowest byte of that code is SQLITE_IOERR.
 */
export function findDamage(
	db: Database.Database,
	{ path, how, most }: { path: string; how: 'quick_check' | 'integrity_check'; most: number | `'${string}'` },
): string[] {
	const words = db.prepare<[], string>(`PRAGMA ${how}(${most})`).pluck().all();
	const unread = words.find((word) =>
		[...word.matchAll(/error code[= ](\d+)|get page \d+: (\d+)/g)].some(
			([, code, other]) => (Number(code ?? other) & 0xff) === ioKind,
		),
	);
	if (unread !== undefined)
		throw new StoreError(
			'io',
			`${path}: the disk failed to read it (${unread}); check the disk: the file itself may be sound`,
		);
	return words.filter((word) => word !== 'ok');
}

const ioKind = 10;
