/** Opens a store on SQLite by its name: a path, or `:memory:`. */
import { resolve } from 'node:path';
import type { Clock } from '../api/datetime.js';
import { processMark } from './core/processes.js';
import { UnsupportedDatabase } from './errors.js';
import type { WrappingKey } from './keys.js';
import { type BackedUp, type BackupOptions, backupSqlite, isInUse } from './sqlite/backup.js';
import { makeFolder, memoryPath } from './sqlite/connection.js';
import { type Inspection, inspectSqlite } from './sqlite/inspect.js';
import { openSqliteReader, type Reader } from './sqlite/reads.js';
import {
	assertAlone,
	closeLog,
	forgetProcesses,
	type OutOfUse,
	removeSecondNames,
	takeOutOfUse,
} from './sqlite/restore.js';
import { openSqliteStore } from './sqlite/store.js';
import type { Store } from './store.js';
import { isPostgres } from './url.js';

/** How long other processes' locks are waited for at the most, in milliseconds. */
export const mostLockTimeoutMs = 10_000;

export interface OpenOptions {
	clock: Clock;
	/** `existing`: a missing database is `DatabaseMissing`, and nothing is created. */
	mode: 'create' | 'existing';
	/** Called where this opening made the file; of several at once, in one of them. Not across threads. */
	onCreated?: () => void;
	/** The role under which other processes of the database see this one; `cli` when absent. */
	role?: string;
	/** How long to wait for other processes' locks, in milliseconds; `mostLockTimeoutMs` when absent. */
	lockTimeoutMs?: number;
	/** Called where a write waits for another process; the result when that is over. */
	onLocked?: (() => () => void) | undefined;
	/** How long opens and clicks may wait for other writes to share a commit, in milliseconds; 200 when absent. */
	eventDelayMs?: number;
	/**
	 * `apart`: for a long-running process, which copies the log back apart from its commits, and deletes expired data.
	 * `with_commits` when absent: commits that make the log long copy it back.
	 */
	upkeep?: 'apart' | 'with_commits';
	/** A dry run: every write is answered as usual, and undone. */
	isTrial?: boolean;
	/** For many small commits, as of calls that are durable one by one; without effect with `apart`. */
	hasShortLog?: boolean;
	/** Keys of its secrets: the first wraps new values, all unwrap; none when absent. */
	keys?: readonly WrappingKey[];
}

/** Rejects with `DatabaseMissing`, `StoreError` or `UnsupportedDatabase`. */
export async function openStore(url: string, options: OpenOptions): Promise<Store> {
	assertFile(url);
	return openSqliteStore({
		path: sqlitePath(url),
		clock: options.clock,
		mode: options.mode,
		onCreated: options.onCreated,
		role: options.role ?? 'cli',
		// Unique is enough. An unguessable name would load node:crypto, 3 ms of every short command.
		processId: `${processMark()}/${process.pid}-${Math.random().toString(36).slice(2)}`,
		lockTimeoutMs: options.lockTimeoutMs ?? mostLockTimeoutMs,
		onLocked: options.onLocked,
		eventDelayMs: options.eventDelayMs ?? 200,
		upkeep: options.upkeep ?? 'with_commits',
		isTrial: options.isTrial ?? false,
		hasShortLog: options.hasShortLog ?? false,
		keys: options.keys ?? [],
	});
}

/** Opens a reader beside the store that writes, which is opened first. Not for `:memory:`, which cannot be shared. */
export async function openReader(
	url: string,
	{ keys = [] }: Pick<OpenOptions, 'keys'> = {},
): Promise<Reader> {
	assertFile(url);
	return openSqliteReader({ path: sqlitePath(url), keys });
}

/** Opens a database file for inspection, in any state, without changing it. Throws `DatabaseMissing` and `StoreError`. */
export function inspectStore(url: string, { keys = [] }: Pick<OpenOptions, 'keys'> = {}): Inspection {
	assertFile(url);
	return inspectSqlite({ path: sqlitePath(url), keys });
}

/** Copies a database to a file while others use it. Rejects with `DatabaseMissing`, `StoreError` and the signal's reason. */
export async function backUpStore(url: string, options: Omit<BackupOptions, 'path'>): Promise<BackedUp> {
	assertFile(url);
	return backupSqlite({ path: sqlitePath(url), ...options });
}

export {
	assertAlone,
	type BackedUp,
	closeLog,
	forgetProcesses,
	isInUse,
	makeFolder,
	type OutOfUse,
	removeSecondNames,
	takeOutOfUse,
};

/** The file of a database. Throws `UnsupportedDatabase`. */
export function databaseFile(url: string): string {
	assertFile(url);
	return sqlitePath(url);
}

/** Whether only the connection that created the database can see it. */
export function isPrivate(url: string): boolean {
	return url === memoryPath;
}

/** Throws `UnsupportedDatabase` for one without a file. */
export function assertFile(url: string): void {
	if (isPostgres(url)) throw new UnsupportedDatabase('PostgreSQL');
}

function sqlitePath(url: string): string {
	if (url === memoryPath) return url;
	return resolve(url);
}
