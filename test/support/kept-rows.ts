import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';

export async function keptImports(folder: string): Promise<{ keys: string[]; rows: number }> {
	const names = await readdir(folder);
	const found = { keys: [] as string[], rows: 0 };
	for (const name of names.filter((one) => one.endsWith('.db'))) {
		const db = new Database(join(folder, name), { readonly: true });
		found.keys.push(...db.prepare<[], string>('SELECT key FROM imports').pluck().all());
		for (const table of ['import_acks', 'import_intents', 'import_addresses'])
			found.rows += Number(db.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
		db.close();
	}
	return found;
}
