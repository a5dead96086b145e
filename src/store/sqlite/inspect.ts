import { constants, existsSync, realpathSync } from 'node:fs';
import Database from 'better-sqlite3';
import type { Micros } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { DatabaseMissing } from '../errors.js';
import type { WrappingKey } from '../maintenance.js';
import { watcher } from '../moving.js';
import type { OtherProcess } from '../store.js';
import { allows, findDamage, lookAt, translateFailure } from './connection.js';
import { createCore, findOthers } from './core.js';
import { assertOurs, migrations, schemaVersion } from './migrations.js';
import { createSql } from './sql.js';
import { createReads } from './store.js';
import { sizeOf } from './writer.js';

export type Inspection = ReturnType<typeof inspectionOf>;

const mostWords = 5;

export function inspectSqlite(path: string, keys: readonly WrappingKey[] = []): Inspection {
	const file = fileAt(path);
	let db: Database.Database | null = null;
	try {
		db = openUntouched(file);
		assertOurs(db, path);
		return inspectionOf(db, { path, file, keys });
	} catch (error) {
		db?.close();
		throw translateFailure(error, path);
	}
}

/** Resolves links, because SQLite keeps its log beside the file itself. */
export function fileAt(path: string): string {
	const found = lookAt(path);
	if (found === undefined) throw new DatabaseMissing(path);
	if (found.isDirectory()) throw new StoreError('not_a_database', `${path} is a directory`);
	if (!found.isFile()) throw new StoreError('not_a_database', `${path} is not a regular file`);
	return realpathSync(path);
}

/**
 * Opens a database without changing its files. If a log exists, a read-only connection keeps it from being
 * checkpointed. If none exists, a read-only connection would leave an empty log behind, so the connection may write.
 */
export function openUntouched(path: string): Database.Database {
	const hasLog = ['-wal', '-journal'].some((suffix) => existsSync(path + suffix));
	const readonly = hasLog || !allows(path, constants.W_OK);
	const db = new Database(path, { readonly, fileMustExist: true, timeout: 1_000 });
	db.pragma('query_only = ON');
	db.pragma('trusted_schema = OFF');
	return db;
}

export function usersOf(others: readonly OtherProcess[]): OtherProcess[] {
	return others.map(({ host, pid, role }) => ({ host, pid, role }));
}

function inspectionOf(
	db: Database.Database,
	{ path, file, keys }: { path: string; file: string; keys: readonly WrappingKey[] },
) {
	const sql = createSql(db, keys);
	const found = Number(db.pragma('user_version', { simple: true }));
	const told = <T>(look: () => T): T => {
		try {
			return look();
		} catch (error) {
			throw translateFailure(error, path);
		}
	};
	return {
		schema: { found, known: schemaVersion },
		bytes: { file: sizeOf(file), log: sizeOf(`${file}-wal`) },
		reads: createReads({ db, path, core: createCore(sql) }),
		newest: (of: 'records' | 'records and heartbeats'): Micros | null => {
			const more = of === 'records' ? furtherText : 'SELECT max(heartbeat_at) FROM processes';
			return Math.max(sql.number(newestText), sql.number(more)) || null;
		},
		usedBy: (now: Micros): OtherProcess[] => (found === 0 ? [] : usersOf(findOthers(sql, watcher, now))),
		findDamage: (how: 'quick' | 'whole'): string[] =>
			told(() => {
				const pragma = how === 'quick' ? 'quick_check' : 'integrity_check';
				return findDamage(db, { path, how: pragma, most: mostWords });
			}),
		/** A trigger of another program would run within mailctl's statements. */
		findForeign: (): string | null => {
			const ours = schemaObjects();
			const all = db.prepare<[], string>(objectsText).pluck().all();
			const foreign = all.find((one) => !ours.has(one) && !/ sqlite_/.test(one));
			return foreign === undefined ? null : `${foreign.startsWith('index') ? 'an' : 'a'} ${foreign}`;
		},
		findOrphans: (): string[] =>
			told(() =>
				db
					.prepare<[], { table: string; rowid: number | null; parent: string }>(
						`SELECT "table", rowid, parent FROM pragma_foreign_key_check LIMIT ${mostWords}`,
					)
					.all()
					.map((row) => `row ${row.rowid ?? ''} of ${row.table} has no parent in ${row.parent}`),
			),
		close: (): void => void db.close(),
	};
}

const objectsText = `SELECT type || ' ' || name || iif(sql LIKE 'CREATE VIRTUAL%', ', which is virtual', '')
	FROM sqlite_schema`;

function schemaObjects(): ReadonlySet<string> {
	const db = new Database(':memory:');
	for (const migration of migrations) db.exec(migration.sql);
	const names = db.prepare<[], string>(objectsText).pluck().all();
	db.close();
	return new Set(names);
}

const furtherText = `SELECT max(at) FROM (
	SELECT max(created_at) AS at FROM suppressions
	UNION ALL SELECT max(created_at) FROM fields
	UNION ALL SELECT max(created_at) FROM senders
	UNION ALL SELECT max(updated_at) FROM templates
	UNION ALL SELECT max(created_at) FROM tokens
	UNION ALL SELECT max(coalesce(canceled_at, released_at, created_at)) FROM campaigns
	UNION ALL SELECT max(coalesce(finished_at, created_at)) FROM imports
)`;

const newestText = `SELECT max(at) FROM (
	SELECT max(updated_at) AS at FROM settings
	UNION ALL SELECT max(at) FROM events
	UNION ALL SELECT max(created_at) FROM lists
	UNION ALL SELECT max(erased_at) FROM erased
	UNION ALL SELECT created_at FROM subscribers WHERE id = (SELECT max(id) FROM subscribers)
	UNION ALL SELECT created_at FROM messages WHERE id = (SELECT max(id) FROM messages)
)`;
