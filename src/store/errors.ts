/** What goes wrong with the place where data is kept, whichever kind of database it is. */

/**
 * `locked`: another process held the write lock longer than we wait. `busy_elsewhere`: a running process uses the
 * older schema, so it cannot be migrated now. `io` covers read errors, corruption and a read-only file.
 */
export type StoreErrorCode =
	| 'not_a_database'
	| 'newer_schema'
	| 'locked'
	| 'disk_full'
	| 'io'
	| 'busy_elsewhere';

/** A failure of the store itself, never of what was asked. The message names the file and what to do. */
export class StoreError extends Error {
	override readonly name: string = 'StoreError';
	readonly code: StoreErrorCode;
	constructor(code: StoreErrorCode, message: string, options: { cause?: unknown } = {}) {
		super(message, options);
		this.code = code;
	}
}

/** A database was named that does not exist; nothing was created. */
export class DatabaseMissing extends Error {
	override readonly name = 'DatabaseMissing';
	readonly path: string;
	constructor(path: string) {
		super(`there is no database at ${path}`);
		this.path = path;
	}
}

/** The kind of database that a URL names is not one this version can open. */
export class UnsupportedDatabase extends Error {
	override readonly name = 'UnsupportedDatabase';
	readonly scheme: string;
	constructor(scheme: string) {
		super(`${scheme} databases are not built yet: name a SQLite file instead`);
		this.scheme = scheme;
	}
}
