import { resolve } from 'node:path';
import { UnsupportedDatabase } from './errors.js';
import {
	assertAlone,
	type BackedUp,
	type BackupOptions,
	backupSqlite,
	closeLog,
	forgetProcesses,
	isInUse,
	type OutOfUse,
	removeSecondNames,
	takeOutOfUse,
} from './sqlite/backup.js';
import { makeFolder, memoryPath } from './sqlite/connection.js';
import { type Inspection, inspectSqlite } from './sqlite/inspect.js';
import {
	mostLockTimeoutMs,
	type OpenOptions,
	openSqliteReader,
	openSqliteStore,
	type Reader,
} from './sqlite/store.js';
import type { Store } from './store.js';
import { isPostgres } from './url.js';

export {
	assertAlone,
	type BackedUp,
	closeLog,
	forgetProcesses,
	isInUse,
	makeFolder,
	mostLockTimeoutMs,
	type OpenOptions,
	type OutOfUse,
	removeSecondNames,
	takeOutOfUse,
};

export async function openStore(url: string, options: OpenOptions): Promise<Store> {
	return openSqliteStore(databaseFile(url), options);
}

export async function openReader(url: string, { keys }: Pick<OpenOptions, 'keys'> = {}): Promise<Reader> {
	return openSqliteReader(databaseFile(url), keys);
}

export function inspectStore(url: string, { keys }: Pick<OpenOptions, 'keys'> = {}): Inspection {
	return inspectSqlite(databaseFile(url), keys);
}

export async function backUpStore(url: string, options: Omit<BackupOptions, 'path'>): Promise<BackedUp> {
	return backupSqlite({ path: databaseFile(url), ...options });
}

export function databaseFile(url: string): string {
	if (isPostgres(url)) throw new UnsupportedDatabase('PostgreSQL');
	return isPrivate(url) ? url : resolve(url);
}

export function isPrivate(url: string): boolean {
	return url === memoryPath;
}
