import { once } from 'node:events';
import { copyFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { startProgram } from '../support/cli.js';
import { makeProject } from '../support/project.js';

const words = ['subscribers', 'export', '-l', '1', '--format', 'csv', '--fields', 'email,name'];

async function projectOf(count: number) {
	const project = await makeProject();
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'asked']);
	const rows = Array.from({ length: count }, (_, row) => `r${row}@example.org,old`);
	const table = `email,name\n${rows.join('\n')}\n`;
	await project.json(['subscribers', 'import', await project.file('readers.csv', table), '-l', '1']);
	return { ...project, table };
}

it('a long export keeps reading the old database file after a new file replaces it', async () => {
	const { db, folder, table } = await projectOf(60_000);
	const other = join(folder, 'other.db');
	const own = new Database(db);
	own.pragma('wal_checkpoint(TRUNCATE)');
	await copyFile(db, other);
	own.close();
	const another = new Database(other);
	another.exec("UPDATE subscribers SET name = 'new'");
	another.close();

	// A full pipe stops the export before row 20,000, where a thread would open the path again.
	const program = startProgram(['--db', db, ...words], { HOME: folder });
	const ended = once(program, 'close');
	await once(program.stdout, 'readable');
	await rename(db, `${db}.old`);
	await rename(other, db);
	expect(await text(program.stdout)).toBe(table);
	expect(await ended).toEqual([0, null]);
});
