import { accessSync, constants, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { StoreError } from '../../api/errors.js';
import { DatabaseUnwritable } from '../errors.js';

export function sqliteCode(error: unknown): string | null {
	return error instanceof Database.SqliteError ? error.code : null;
}

export function isBusy(error: unknown): boolean {
	const code = sqliteCode(error);
	return code?.startsWith('SQLITE_BUSY') === true || code?.startsWith('SQLITE_LOCKED') === true;
}

/** SQLite may have rolled back the whole transaction, savepoints included. */
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
		return new StoreError('disk_full', `no room left on the disk of ${path}`, { cause: error });
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

/** SQLite's index of its log grows by 32 KiB, and SQLite does not say why it could not. */
const logIndexBytes = 32_768;

export function freeBytes(path: string): number {
	try {
		const { bavail, bsize } = statfsSync(dirname(path));
		return bavail * bsize;
	} catch {
		return Number.POSITIVE_INFINITY;
	}
}

/** SQLite says only that it cannot open, where it cannot make its log. */
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
	// A page that could not be read is sometimes reported as damaged.
	if (code.startsWith('SQLITE_CORRUPT'))
		return 'it reads as damaged; "mailctl doctor --only database --full" tells whether it is, or the disk fails';
	if (code.startsWith('SQLITE_CANTOPEN')) return 'the database file cannot be opened; check its permissions';
	if (code.startsWith('SQLITE_NOMEM')) return 'out of memory';
	return `the disk failed to read or write it (${code})`;
}

/**
 * SQLite's messages about damage. Throws `StoreError` where the disk failed: SQLite reports that only as `… error
 * code=266`, whose lowest byte is its kind.
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
			`${path}: the disk failed to read it (${unread}): look at the disk before a backup is restored`,
		);
	return words.filter((word) => word !== 'ok');
}

const ioKind = 10;
