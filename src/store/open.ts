/** Opens a store by what names it: a path, `file:` URL or `:memory:` for SQLite. */
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../api/datetime.js';
import { UnsupportedDatabase } from './errors.js';
import { memoryPath } from './sqlite/connection.js';
import { type Inspection, inspectSqlite } from './sqlite/inspect.js';
import { openSqliteReader, type Reader } from './sqlite/reads.js';
import { openSqliteStore } from './sqlite/store.js';
import type { Store } from './store.js';

export interface OpenOptions {
	clock: Clock;
	/** `existing`: a database that is missing is `DatabaseMissing`, and nothing is created. */
	mode: 'create' | 'existing';
	/** How this process calls itself to others that have the database open; `cli` when absent. */
	role?: string;
	/** How long to wait for other processes' locks, in milliseconds; 10,000 when absent. */
	lockTimeoutMs?: number;
	/** How long opens and clicks may wait for company in their commit, in milliseconds; 200 when absent. */
	eventDelayMs?: number;
	/**
	 * `apart`: this process stays, so besides its commits it copies the log back, and deletes what is kept for a time
	 * only. `with_commits` when absent: the log is copied back by the commits that make it long.
	 */
	upkeep?: 'apart' | 'with_commits';
}

/** Rejects with `DatabaseMissing`, `StoreError` or `UnsupportedDatabase`. */
export async function openStore(url: string, options: OpenOptions): Promise<Store> {
	assertSupported(url);
	return openSqliteStore({
		path: sqlitePath(url),
		clock: options.clock,
		mode: options.mode,
		role: options.role ?? 'cli',
		// Unlike any other is enough; unguessable would load node:crypto, 3 ms of every short command.
		processId: `${process.pid}-${Math.random().toString(36).slice(2)}`,
		lockTimeoutMs: options.lockTimeoutMs ?? 10_000,
		eventDelayMs: options.eventDelayMs ?? 200,
		upkeep: options.upkeep ?? 'with_commits',
	});
}

/** For reading beside the store that writes, which was opened first. Not for `:memory:`, which nobody shares. */
export async function openReader(url: string): Promise<Reader> {
	assertSupported(url);
	return openSqliteReader({ path: sqlitePath(url) });
}

/** For looking at what is there, whatever its state, without changing it. Throws `DatabaseMissing` and `StoreError`. */
export function inspectStore(url: string): Inspection {
	assertSupported(url);
	return inspectSqlite({ path: sqlitePath(url) });
}

/** A database that only the connection that made it can see. */
export function isPrivate(url: string): boolean {
	return url === memoryPath;
}

function assertSupported(url: string): void {
	if (/^postgres(ql)?:\/\//i.test(url)) throw new UnsupportedDatabase('PostgreSQL');
}

function sqlitePath(url: string): string {
	if (url === memoryPath) return url;
	if (url.startsWith('file:')) return fileURLToPath(url);
	return resolve(url);
}
