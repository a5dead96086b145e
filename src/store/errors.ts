/** Errors in the name of a database. Failures of an open database are `StoreError`, which the API knows. */

/** The database does not exist; nothing was created. */
export class DatabaseMissing extends Error {
	override readonly name = 'DatabaseMissing';
	readonly path: string;
	constructor(path: string) {
		super(`there is no database at ${path}`);
		this.path = path;
	}
}

/** The command is not for the kind of database that a URL names. */
export class UnsupportedDatabase extends Error {
	override readonly name = 'UnsupportedDatabase';
	readonly scheme: string;
	constructor(scheme: string) {
		super(`this command works on a SQLite file; ${scheme} has its own programs for it (pg_dump, pg_restore)`);
		this.scheme = scheme;
	}
}
