/** Statements that nothing waits for: what fails among them is told, and nothing of their transaction stays. */
import { expect, it, onTestFinished } from 'vitest';
import type { Sql } from '../../../src/store/core/sql.js';
import { openDatabase } from '../../../src/store/postgres/connection.js';
import { readPlace } from '../../../src/store/postgres/place.js';
import { ask, describePostgres } from '../../support/postgres.js';

describePostgres('a write without an answer', (server) => {
	async function open() {
		const url = await server.createDatabase();
		await ask(url, 'CREATE TABLE places (name TEXT PRIMARY KEY)', "INSERT INTO places VALUES ('taken')");
		const options = { size: 1, role: 'cli', keys: [], lockTimeoutMs: 5_000, isTrial: false };
		const database = openDatabase({ ...options, place: readPlace(url) });
		onTestFinished(() => database.close());
		const names = () => database.read(({ sql }) => sql.all<{ name: string }>('SELECT name FROM places'));
		return { database, names };
	}

	const put = (sql: Sql, name: string) => sql.write('INSERT INTO places (name) VALUES (?)', name);
	const refused = { code: '23505' };

	const ways: [name: string, operate: (sql: Sql) => Promise<unknown>][] = [
		[
			'at the end',
			async (sql) => {
				put(sql, 'new');
				put(sql, 'taken');
			},
		],
		[
			'before a question',
			async (sql) => {
				put(sql, 'taken');
				return await sql.number('SELECT count(*) FROM places');
			},
		],
		[
			'a round trip before the next question',
			async (sql) => {
				await sql.together([() => sql.number('SELECT count(*) FROM places'), async () => put(sql, 'taken')]);
				return await sql.number('SELECT count(*) FROM places');
			},
		],
		[
			'a round trip before the end',
			async (sql) => {
				await sql.together([() => sql.number('SELECT count(*) FROM places'), async () => put(sql, 'taken')]);
			},
		],
	];

	it.each(ways)('that fails %s undoes its transaction, with its own error', async (_, operate) => {
		const { database, names } = await open();
		await expect(database.write(({ sql }) => operate(sql))).rejects.toMatchObject(refused);
		expect(await names()).toEqual([{ name: 'taken' }]);
		// The connection serves the next one.
		await database.write(async ({ sql }) => put(sql, 'later'));
		expect(await names()).toHaveLength(2);
	});

	it('comes before the question that follows it', async () => {
		const { database } = await open();
		const count = await database.write(async ({ sql }) => {
			put(sql, 'new');
			return await sql.number('SELECT count(*) FROM places');
		});
		expect(count).toBe(2);
	});
});
