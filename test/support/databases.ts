/** Runs a suite on SQLite files, and on PostgreSQL if a server is available. */
import { copyFile, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect } from 'vitest';
import { isPostgres } from '../../src/store/url.js';
import { cli } from './cli.js';
import { expectSound } from './fault-points.js';
import { emptyDatabase } from './model.js';
import { ask, copyDatabase as copyOnServer, describePostgres } from './postgres.js';

export interface Databases {
	kind: 'SQLite' | 'PostgreSQL';
	create(): Promise<string>;
}

export function describeDatabases(name: string, suite: (databases: Databases) => void): void {
	describe(`${name} (SQLite)`, () => {
		suite({ kind: 'SQLite', create: async () => emptyDatabase(await newPath()) });
	});
	describePostgres(`${name} (PostgreSQL)`, ({ createDatabase }) => {
		suite({ kind: 'PostgreSQL', create: createDatabase });
	});
}

async function newPath(): Promise<string> {
	return join(await mkdtemp(join(tmpdir(), 'mailctl-database-')), 'news.db');
}

export async function rowsOf(db: string, text: string): Promise<Record<string, unknown>[]> {
	if (isPostgres(db)) return await ask(db, text);
	const database = new Sqlite(db, { readonly: true, fileMustExist: true });
	try {
		return database.prepare<[], Record<string, unknown>>(text).all();
	} finally {
		database.close();
	}
}

export async function copyDatabase(db: string): Promise<string> {
	if (isPostgres(db)) return await copyOnServer(db);
	const copy = await newPath();
	await copyFile(db, copy);
	return copy;
}

export async function expectWhole(db: string): Promise<void> {
	if (!isPostgres(db)) expectSound(db);
	const { code, stdout, stderr } = await cli(['--db', db, 'engine', 'check']);
	expect({ code, said: code === 0 ? '' : stdout + stderr }).toEqual({ code: 0, said: '' });
}
