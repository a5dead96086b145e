import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { runCall } from '../support/golden/program.js';
import { expectGolden } from '../support/golden/record.js';

it('the schema of a new database', async () => {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-golden-'));
	const db = join(folder, 'new.db');
	expect(await runCall({ argv: ['--db', db, 'engine', 'init'], env: { HOME: folder } })).toMatchObject({
		code: 0,
	});
	const database = new Database(db, { readonly: true });
	const version = database.pragma('user_version', { simple: true });
	const rows = database
		.prepare<[], { type: string; name: string; sql: string | null }>(
			'SELECT type, name, sql FROM sqlite_master ORDER BY tbl_name, type DESC, name',
		)
		.all();
	database.close();
	await rm(folder, { recursive: true });
	const statements = rows.map(({ type, name, sql }) =>
		sql === null ? `-- ${type} ${name}, made by SQLite\n` : `${sql};\n`,
	);
	await expectGolden('schema.sql', [`PRAGMA user_version = ${version};\n`, ...statements].join('\n'));
});
