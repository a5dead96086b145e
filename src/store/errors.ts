import { StoreError } from '../api/errors.js';

export class DatabaseMissing extends Error {
	override readonly name = 'DatabaseMissing';
	readonly path: string;
	constructor(path: string) {
		super(`there is no database at ${path}`);
		this.path = path;
	}
}

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
		super(`this command needs a SQLite file; for ${scheme} use pg_dump and pg_restore`);
		this.scheme = scheme;
	}
}

export function damaged(cause: unknown): StoreError {
	return new StoreError('io', 'a row of the database is damaged: it contains invalid JSON', {
		cause,
	});
}
