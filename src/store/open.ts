/** Opens a store by what names it: a path, `file:` URL or `:memory:` for SQLite. */
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../api/datetime.js';
import { UnsupportedDatabase } from './errors.js';
import { memoryPath } from './sqlite/connection.js';
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
}

/** Rejects with `DatabaseMissing`, `StoreError` or `UnsupportedDatabase`. */
export async function openStore(url: string, options: OpenOptions): Promise<Store> {
	if (/^postgres(ql)?:\/\//i.test(url)) throw new UnsupportedDatabase('PostgreSQL');
	return openSqliteStore({
		path: sqlitePath(url),
		clock: options.clock,
		mode: options.mode,
		role: options.role ?? 'cli',
		// Unlike any other is enough; unguessable would load node:crypto, 3 ms of every short command.
		processId: `${process.pid}-${Math.random().toString(36).slice(2)}`,
		lockTimeoutMs: options.lockTimeoutMs ?? 10_000,
		eventDelayMs: options.eventDelayMs ?? 200,
	});
}

function sqlitePath(url: string): string {
	if (url === memoryPath) return url;
	if (url.startsWith('file:')) return fileURLToPath(url);
	return resolve(url);
}
