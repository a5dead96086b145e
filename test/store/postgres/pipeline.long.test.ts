import { expect, it, onTestFinished } from 'vitest';
import type { Sql } from '../../../src/store/core/sql.js';
import { Database } from '../../../src/store/postgres/connection.js';
import { readPlace } from '../../../src/store/postgres/place.js';
import { ask, describePostgres } from '../../support/postgres.js';

describePostgres('statements that wait for no answer', (server) => {
	async function open() {
		const url = await server.createDatabase();
		await ask(url, 'CREATE TABLE places (name TEXT PRIMARY KEY)', "INSERT INTO places VALUES ('taken')");
		const options = { size: 1, role: 'cli', keys: [], lockTimeoutMs: 5_000, isTrial: false };
		const database = new Database({ ...options, place: readPlace(url) });
		onTestFinished(() => database.close());
		const names = () => database.read(({ sql }) => sql.all<{ name: string }>('SELECT name FROM places'));
		return { database, names };
	}

	const put = (sql: Sql, name: string) => sql.write('INSERT INTO places (name) VALUES (?)', [name]);
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
			'before a query',
			async (sql) => {
				put(sql, 'taken');
				return await sql.number('SELECT count(*) FROM places');
			},
		],
		[
			'one round trip before the next query',
			async (sql) => {
				await sql.together([() => sql.number('SELECT count(*) FROM places'), async () => put(sql, 'taken')]);
				return await sql.number('SELECT count(*) FROM places');
			},
		],
		[
			'one round trip before the end',
			async (sql) => {
				await sql.together([() => sql.number('SELECT count(*) FROM places'), async () => put(sql, 'taken')]);
			},
		],
	];

	it.each(ways)('roll back and report their own error if one fails: %s', async (_, operate) => {
		const { database, names } = await open();
		await expect(database.write(({ sql }) => operate(sql))).rejects.toMatchObject(refused);
		expect(await names()).toEqual([{ name: 'taken' }]);
		await database.write(async ({ sql }) => put(sql, 'later'));
		expect(await names()).toHaveLength(2);
	});

	it('are sent at once, without waiting for more, if they are large', async () => {
		const { database } = await open();
		const clock = (sql: Sql, given: string) =>
			sql.number('SELECT 1000 * extract(epoch from clock_timestamp()) + length(CAST(? AS TEXT)) * 0', [
				given,
			]);
		const large = 'x'.repeat(200_000);
		let asked = 0;
		const [first, second] = await database.write(({ sql }) =>
			sql.together([
				() => clock(sql, large),
				() => {
					const until = performance.now() + 500;
					while (performance.now() < until);
					asked = Date.now();
					return clock(sql, large);
				},
			]),
		);
		expect(first).toBeLessThan(asked);
		expect(second).toBeGreaterThan(first);
	});

	it('all take effect, whether they are large or small', async () => {
		const { database, names } = await open();
		const large = Array.from({ length: 5 }, (_, at) => `${at}`.repeat(100_000));
		await database.write(async ({ sql }) => {
			for (const name of large) {
				put(sql, name);
				put(sql, name.slice(0, 2));
			}
			await sql.together(large.map((name) => () => sql.number('SELECT length(?)', [name])));
		});
		expect((await names()).map(({ name }) => name).toSorted()).toEqual(
			[...large, ...large.map((name) => name.slice(0, 2)), 'taken'].toSorted(),
		);
	});

	it('are all rolled back if a small statement between large ones fails', async () => {
		const { database, names } = await open();
		const failing = database.write(async ({ sql }) => {
			put(sql, 'a'.repeat(100_000));
			put(sql, 'taken');
			put(sql, 'b'.repeat(100_000));
		});
		await expect(failing).rejects.toMatchObject(refused);
		expect(await names()).toEqual([{ name: 'taken' }]);
	});
});
