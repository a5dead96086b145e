/** SQLite's result codes as the store's own errors. */
import Database from 'better-sqlite3';
import { StoreError } from '../errors.js';

/** The result code of an error that came from SQLite; null for any other. */
export function sqliteCode(error: unknown): string | null {
	return error instanceof Database.SqliteError ? error.code : null;
}

/** Somebody else holds a lock: worth another try. */
export function isBusy(error: unknown): boolean {
	const code = sqliteCode(error);
	return code?.startsWith('SQLITE_BUSY') === true || code?.startsWith('SQLITE_LOCKED') === true;
}

/** SQLite may have rolled back the whole transaction, savepoints included: nothing of the group survived. */
export function endsTransaction(error: unknown): boolean {
	const code = sqliteCode(error);
	return code !== null && /^SQLITE_(FULL|IOERR|NOMEM|CORRUPT|READONLY|CANTOPEN|INTERRUPT)/.test(code);
}

/** The store's error for one of SQLite's; anything else comes back as it is. */
export function translateFailure(error: unknown, path: string): unknown {
	const code = sqliteCode(error);
	if (code === null) return error;
	if (isBusy(error)) {
		return new StoreError('locked', `${path} is locked by another process; try again`, { cause: error });
	}
	if (code.startsWith('SQLITE_FULL')) {
		return new StoreError('disk_full', `no room left on the disk of ${path}`, { cause: error });
	}
	if (code === 'SQLITE_NOTADB') {
		return new StoreError('not_a_database', `${path} is not a mailctl database`, { cause: error });
	}
	if (!endsTransaction(error)) return error;
	return new StoreError('io', `${path}: ${ioReason(code)}`, { cause: error });
}

function ioReason(code: string): string {
	if (code.startsWith('SQLITE_CORRUPT')) return 'the database file is damaged; restore a backup';
	if (code.startsWith('SQLITE_READONLY')) return 'the database file is read-only';
	if (code.startsWith('SQLITE_CANTOPEN')) return 'the database file cannot be opened; check its permissions';
	if (code.startsWith('SQLITE_NOMEM')) return 'out of memory';
	return `the disk failed to read or write it (${code})`;
}
