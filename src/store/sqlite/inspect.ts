/** Looks at a database file without changing it: no migration, no heartbeat, no log left behind or copied back. */
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import type { Micros } from '../../api/datetime.js';
import { DatabaseMissing, StoreError } from '../errors.js';
import type { Reads } from '../store.js';
import { createCore } from './core.js';
import { translateFailure } from './failures.js';
import { assertOurs, schemaVersion } from './migrations.js';
import { createReads } from './reads.js';
import { createSql } from './sql.js';

/** An opened database; `close` it once. */
export interface Inspection {
	/** Of the file and of this version; `found` 0: the file holds nothing yet. */
	readonly schema: { found: number; known: number };
	/** `wal` where this project has opened it. */
	readonly journalMode: string;
	/** Of the file, and of the log beside it. */
	readonly bytes: { file: number; log: number };
	/** Throw where the schema is another one than this version's. */
	readonly reads: Reads;
	/** The latest moment that anything was recorded at; null when nothing was. As `reads`. */
	newest(): Micros | null;
	/** SQLite's own words about what is broken, a few at most; none: sound. `quick` does not compare indexes. */
	findDamage(how: 'quick' | 'whole'): string[];
	close(): void;
}

const mostWords = 5;

/** Throws `DatabaseMissing` and `StoreError`. */
export function inspectSqlite({ path }: { path: string }): Inspection {
	const file = fileAt(path);
	let db: Database.Database | null = null;
	try {
		db = openUntouched(file);
		assertOurs(db, path);
		return inspectionOf(db, { path, file });
	} catch (error) {
		db?.close();
		throw translateFailure(error, path);
	}
}

/** The file itself: SQLite keeps its log there, and not beside a link to it. What can be no database is not opened. */
function fileAt(path: string): string {
	try {
		const file = realpathSync(path);
		const found = statSync(file);
		if (found.isDirectory()) throw new StoreError('not_a_database', `${path} is a directory`);
		if (!found.isFile()) throw new StoreError('not_a_database', `${path} is no regular file`);
		return file;
	} catch (cause) {
		if (cause instanceof StoreError) throw cause;
		const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
		if (code === 'ENOENT' || code === 'ENOTDIR') throw new DatabaseMissing(path);
		const why = code === 'EACCES' ? 'a folder above it lets this user not in' : code;
		throw new StoreError('io', `${path} cannot be looked at: ${why}`, { cause });
	}
}

/**
 * A log that is there is read and left as it is, which only a read-only connection does: another one copies it back when
 * it closes. Where there is none, a read-only connection would leave an empty one behind, so there it is the other one.
 */
function openUntouched(path: string): Database.Database {
	const hasLog = ['-wal', '-journal'].some((suffix) => existsSync(path + suffix));
	const readonly = hasLog || !isWritable(path);
	const db = new Database(path, { readonly, fileMustExist: true, timeout: 1_000 });
	db.pragma('query_only = ON');
	db.pragma('trusted_schema = OFF');
	return db;
}

function isWritable(path: string): boolean {
	try {
		accessSync(path, constants.W_OK);
		return true;
	} catch {
		return false;
	}
}

function inspectionOf(db: Database.Database, { path, file }: { path: string; file: string }): Inspection {
	const sql = createSql(db);
	return {
		schema: { found: Number(db.pragma('user_version', { simple: true })), known: schemaVersion },
		journalMode: String(db.pragma('journal_mode', { simple: true })),
		bytes: { file: sizeOf(file), log: sizeOf(`${file}-wal`) },
		reads: createReads({ db, path, core: createCore(sql) }),
		newest: () => {
			const at = sql.number(newestText);
			return at === 0 ? null : at;
		},
		findDamage: (how) => {
			const pragma = how === 'quick' ? 'quick_check' : 'integrity_check';
			const words = sql.tuples<[string]>(`PRAGMA ${pragma}(${mostWords})`).map(([text]) => text);
			return words.filter((text) => text !== 'ok');
		},
		close: () => db.close(),
	};
}

/** Each by an index or a table of a few rows: a million messages are not walked. */
const newestText = `SELECT max(at) FROM (
	SELECT max(updated_at) AS at FROM settings
	UNION ALL SELECT max(heartbeat_at) FROM processes
	UNION ALL SELECT max(at) FROM events
	UNION ALL SELECT created_at FROM messages WHERE id = (SELECT max(id) FROM messages)
)`;

function sizeOf(path: string): number {
	return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
