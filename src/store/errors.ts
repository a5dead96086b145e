/** Errors in the name or the place of a database, and of a row. Other failures are `StoreError`, which the API knows. */
import { StoreError } from '../api/errors.js';

/** The database does not exist; nothing was created. */
export class DatabaseMissing extends Error {
	override readonly name = 'DatabaseMissing';
	readonly path: string;
	constructor(path: string) {
		super(`there is no database at ${path}`);
		this.path = path;
	}
}

/** This user may not write the database: it cannot be made there, or is read-only. */
export class DatabaseUnwritable extends StoreError {
	override readonly name = 'DatabaseUnwritable';
	readonly path: string;
	constructor(code: 'io' | 'read_only', path: string, reason: string, options: { cause?: unknown } = {}) {
		super(code, reason, options);
		this.path = path;
	}
}

export class UnsupportedDatabase extends Error {
	override readonly name = 'UnsupportedDatabase';
	readonly scheme: string;
	constructor(scheme: string) {
		super(`this command works on a SQLite file; ${scheme} has its own programs for it (pg_dump, pg_restore)`);
		this.scheme = scheme;
	}
}

export function damaged(cause: unknown): StoreError {
	return new StoreError('io', 'a row of the database is damaged: it holds JSON that cannot be read', {
		cause,
	});
}

/** Parses JSON that this program wrote. Throws `StoreError` `io` for any other text: then the database is damaged. */
export function parseStored(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch (cause) {
		throw damaged(cause);
	}
}
