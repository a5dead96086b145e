import type Database from 'better-sqlite3';
import type { Micros } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import type { ProcessIdentity } from '../core/processes.js';
import { type Migration, newerSchema, versionOf } from '../migrations.js';
import { DatabaseMarked, type Mark, markVersion, parseMark } from '../moving.js';
import { findOthers } from './core.js';
import schema from './schema.sqlite.sql';
import { createSql } from './sql.js';

export const migrations: readonly Migration[] = [{ version: 1, name: 'schema', sql: schema }];

export const schemaVersion: number = versionOf(migrations);

const applicationId = 0x6d63746c;

/**
 * Throws `StoreError`: `not_a_database`, `newer_schema`, and `busy_elsewhere` while another process uses the older
 * schema.
 */
export function migrate(
	db: Database.Database,
	options: { path: string; me: ProcessIdentity; now: Micros },
	all: readonly Migration[] = migrations,
): void {
	const goal = versionOf(all);
	if (readVersion(db, options.path, goal) === goal) return;
	db.transaction(() => {
		// Read the version again under the lock, because two processes may open a new database at once.
		const from = readVersion(db, options.path, goal);
		if (from === goal) return;
		if (from > 0) refuseBesideOthers(db, options);
		for (const { version, name, sql } of all.filter(({ version }) => version > from)) {
			db.exec(sql);
			db.prepare('INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)').run(
				version,
				name,
				options.now,
			);
		}
		db.pragma(`application_id = ${applicationId}`);
		db.pragma(`user_version = ${goal}`);
	}).immediate();
}

export function assertOurs(
	db: Database.Database,
	path: string,
	{ mayBeMarked = false }: { mayBeMarked?: boolean } = {},
): void {
	// Read in one snapshot, because another process may be creating the schema.
	const look = db.transaction(() => {
		const owner = Number(db.pragma('application_id', { simple: true }));
		const version = Number(db.pragma('user_version', { simple: true }));
		const tables = Number(db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get());
		const isOurs = owner === applicationId || (owner === 0 && version === 0 && tables === 0);
		return { isOurs, mark: isOurs && version === markVersion ? readMark(db) : null };
	});
	const { isOurs, mark } = look.deferred();
	if (mark !== null && !mayBeMarked) throw new DatabaseMarked(path, mark);
	if (isOurs) return;
	throw new StoreError('not_a_database', `${path} is a SQLite database, but not a mailctl database`);
}

export function readMark(db: Database.Database): Mark | null {
	const text = db
		.prepare<[number], string>('SELECT name FROM migrations WHERE version = ?')
		.pluck()
		.get(markVersion);
	return text === undefined ? null : parseMark(text);
}

export function writeMark(db: Database.Database, mark: Mark): void {
	db.prepare('INSERT OR REPLACE INTO migrations (version, name, applied_at) VALUES (?, ?, ?)').run(
		markVersion,
		JSON.stringify(mark),
		mark.at,
	);
	db.pragma(`user_version = ${markVersion}`);
}

export function eraseMark(db: Database.Database): void {
	db.prepare('DELETE FROM migrations WHERE version = ?').run(markVersion);
	db.pragma(`user_version = ${schemaVersion}`);
}

function readVersion(db: Database.Database, path: string, known: number): number {
	assertOurs(db, path);
	const version = Number(db.pragma('user_version', { simple: true }));
	if (version > known) throw newerSchema(path, version, known);
	return version;
}

function refuseBesideOthers(
	db: Database.Database,
	{ path, me, now }: { path: string; me: ProcessIdentity; now: Micros },
): void {
	const [other] = findOthers(createSql(db), me, now);
	if (other === undefined) return;
	throw new StoreError(
		'busy_elsewhere',
		`${path} has an older schema and is in use by ${other.role} (pid ${other.pid} on ${other.host}); stop it first`,
	);
}
