import { resolve } from 'node:path';
import { UnsupportedDatabase } from './errors.js';
import { type BackedUp, type BackupOptions, backupSqlite } from './sqlite/backup.js';
import { memoryPath } from './sqlite/connection.js';
import { type Inspection, inspectSqlite } from './sqlite/inspect.js';
import { type OpenOptions, openSqliteReader, type Reader, SqliteStore } from './sqlite/store.js';
import type { Store } from './store.js';
import { isPostgres } from './url.js';

export async function openStore(url: string, options: OpenOptions): Promise<Store> {
	return new SqliteStore(databaseFile(url), options);
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
