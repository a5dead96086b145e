/**
 * Brings a database to this version's schema, or throws the reason. Migrations are numbered, additive and never edited.
 */

import type Database from 'better-sqlite3';
import type { Micros } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import type { ProcessIdentity } from '../core/processes.js';
import { DatabaseMarked, type Mark, markVersion, parseMark } from '../moving.js';
import { findOthers } from './core.js';
import { first } from './migrations/0001-first.js';
import { mailingBatches } from './migrations/0002-mailing-batches.js';
import { mailingResults } from './migrations/0003-mailing-results.js';
import { queuePauses } from './migrations/0004-queue-pauses.js';
import { dkimAndLimits } from './migrations/0005-dkim-and-limits.js';
import { bounceReports } from './migrations/0006-bounce-reports.js';
import { notifications } from './migrations/0008-notifications.js';
import { bouncedMessages } from './migrations/0009-bounced-messages.js';
import { clockKept } from './migrations/0010-clock.js';
import { suppressionsOfLists } from './migrations/0011-suppressions-of-lists.js';
import { owners } from './migrations/0012-owners.js';
import { compositions } from './migrations/0013-compositions.js';
import { couriers } from './migrations/0014-couriers.js';
import { rowImports } from './migrations/0015-row-imports.js';
import { campaigns } from './migrations/0016-campaigns.js';
import { reportFigures } from './migrations/0017-report-figures.js';
import { audiences } from './migrations/0018-audiences.js';
import { attachments } from './migrations/0019-attachments.js';
import { listPublicNames } from './migrations/0020-list-public-names.js';
import { counted } from './migrations/0022-counted.js';
import { listCounters } from './migrations/0023-list-counters.js';
import { counters } from './migrations/0024-counters.js';
import { waitingStates } from './migrations/0026-waiting-states.js';
import { retention } from './migrations/0027-retention.js';
import { deletedStates } from './migrations/0028-deleted-states.js';
import { emailOnce } from './migrations/0029-email-once.js';
import { bouncedFigures } from './migrations/0030-bounced-figures.js';
import { statesOfCampaigns } from './migrations/0031-states-of-campaigns.js';
import { deletedJoined } from './migrations/0032-deleted-joined.js';
import { leftOutOfCalls } from './migrations/0033-left-out-of-calls.js';
import { tracking } from './migrations/0034-tracking.js';
import { senderNames } from './migrations/0035-sender-names.js';
import { attachmentOwners } from './migrations/0036-attachment-owners.js';
import { provenTime } from './migrations/0037-proven-time.js';
import { createSql } from './sql.js';

export interface Migration {
	readonly version: number;
	readonly name: string;
	readonly sql: string;
}

/** In their order. */
export const allMigrations: readonly Migration[] = [
	first,
	mailingBatches,
	mailingResults,
	queuePauses,
	dkimAndLimits,
	bounceReports,
	notifications,
	bouncedMessages,
	clockKept,
	suppressionsOfLists,
	owners,
	compositions,
	couriers,
	rowImports,
	campaigns,
	reportFigures,
	audiences,
	attachments,
	listPublicNames,
	counted,
	listCounters,
	counters,
	waitingStates,
	retention,
	deletedStates,
	emailOnce,
	bouncedFigures,
	statesOfCampaigns,
	deletedJoined,
	leftOutOfCalls,
	tracking,
	senderNames,
	attachmentOwners,
	provenTime,
];

/** The schema this version reads and writes. */
export const schemaVersion: number = versionOf(allMigrations);

/** `mctl` in the file's header: distinguishes our databases from other programs' databases. */
const applicationId = 0x6d63746c;

/**
 * Migrates in one transaction. Throws `StoreError`: `not_a_database` for another program's database, `newer_schema`,
 * `busy_elsewhere` while another living process uses the older schema.
 */
export function migrate(
	db: Database.Database,
	options: { path: string; me: ProcessIdentity; now: Micros },
	migrations: readonly Migration[] = allMigrations,
): void {
	const goal = versionOf(migrations);
	if (readVersion(db, options.path, goal) === goal) return;
	db.transaction(() => {
		// Read again under the lock: two processes may open a new database at once.
		const from = readVersion(db, options.path, goal);
		if (from === goal) return;
		if (from > 0) refuseBesideOthers(db, options);
		for (const migration of migrations.filter((each) => each.version > from))
			apply(db, migration, options.now);
		db.pragma(`application_id = ${applicationId}`);
		db.pragma(`user_version = ${goal}`);
	}).immediate();
}

/**
 * Throws `StoreError` "not_a_database" for another program's database, and "moved" for one that a move has marked; an
 * empty one is fine. Only reads.
 */
export function assertOurs(
	db: Database.Database,
	path: string,
	{ mayBeMarked = false }: { mayBeMarked?: boolean } = {},
): void {
	// In one snapshot: another process may be creating our schema between two of these queries.
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
	throw new StoreError('not_a_database', `${path} is a SQLite database, but not one of mailctl`);
}

/** Null: no move has marked it. It has our tables. */
export function readMark(db: Database.Database): Mark | null {
	const text = db
		.prepare<[number], string>('SELECT name FROM migrations WHERE version = ?')
		.pluck()
		.get(markVersion);
	return text === undefined ? null : parseMark(text);
}

/** In a transaction of the caller. */
export function writeMark(db: Database.Database, mark: Mark): void {
	db.prepare('INSERT OR REPLACE INTO migrations (version, name, applied_at) VALUES (?, ?, ?)').run(
		markVersion,
		JSON.stringify(mark),
		mark.at,
	);
	db.pragma(`user_version = ${markVersion}`);
}

/** In a transaction of the caller. */
export function eraseMark(db: Database.Database): void {
	db.prepare('DELETE FROM migrations WHERE version = ?').run(markVersion);
	db.pragma(`user_version = ${schemaVersion}`);
}

function versionOf(migrations: readonly Migration[]): number {
	return Math.max(...migrations.map((each) => each.version));
}

function readVersion(db: Database.Database, path: string, known: number): number {
	assertOurs(db, path);
	const version = Number(db.pragma('user_version', { simple: true }));
	if (version > known) {
		throw new StoreError(
			'newer_schema',
			`${path} was written by a newer mailctl (schema ${version}, this one knows ${known}); upgrade mailctl`,
		);
	}
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

function apply(db: Database.Database, migration: Migration, now: Micros): void {
	db.exec(migration.sql);
	db.prepare('INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)').run(
		migration.version,
		migration.name,
		now,
	);
}
