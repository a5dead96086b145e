import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Sql } from '../../../src/store/core/sql.js';
import { oldestPostgres } from '../../../src/store/maintenance.js';
import { readVersion } from '../../../src/store/postgres/migrations.js';

const root = join(import.meta.dirname, '../../..');
const last = oldestPostgres - 1;

function serverOf(number: number): Sql {
	return { tuples: async () => [[0, number]] } as unknown as Sql;
}

describe('the oldest supported PostgreSQL', () => {
	it('is accepted, and an older one is rejected with its version', async () => {
		const name = 'postgres://db/mail';
		expect(await readVersion(serverOf(oldestPostgres * 10_000), name)).toBe(0);
		await expect(readVersion(serverOf(last * 10_000 + 22), name)).rejects.toMatchObject({
			code: 'not_a_database',
			message: `postgres://db/mail runs PostgreSQL ${last}, but mailctl needs ${oldestPostgres} or newer: upgrade the server`,
		});
	});

	it.each(['docs/deploying.md', 'docs/scaling.md'])('is documented in %s', async (page) => {
		const text = await readFile(join(root, page), 'utf8');
		const named = text.matchAll(/PostgreSQL (?:of yours \()?(\d+) or newer|PostgreSQL older than (\d+)/g);
		expect([...named].map(([, from, than]) => from ?? than)).toEqual([String(oldestPostgres)]);
	});
});
