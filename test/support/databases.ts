/** One suite on both databases: files of SQLite, and a server of PostgreSQL where there is one. */
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
	/** A new one without records, for `--db`. */
	create(): Promise<string>;
}

/** The suite runs once on each; its title says on which. */
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

/** Asked without mailctl. */
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

/** Counts are those of what they count, and SQLite finds nothing wrong in its file. */
export async function expectWhole(db: string): Promise<void> {
	if (!isPostgres(db)) expectSound(db);
	const { code, stdout, stderr } = await cli(['--db', db, 'engine', 'check']);
	expect({ code, said: code === 0 ? '' : stdout + stderr }).toEqual({ code: 0, said: '' });
}
