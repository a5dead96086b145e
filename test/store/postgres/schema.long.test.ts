import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { Database } from '../../../src/store/postgres/connection.js';
import { migrate, migrations, schemaVersion } from '../../../src/store/postgres/migrations.js';
import { readPlace } from '../../../src/store/postgres/place.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import { memoryStore } from '../../support/memory-store.js';
import { ask, describePostgres } from '../../support/postgres.js';

interface Column {
	table: string;
	name: string;
	type: string;
	required: number;
	key: number;
}

function ofSqlite(): Column[] {
	return memoryStore()
		.db.prepare<[], Column>(
			`SELECT m.name AS "table", c.name, c.type, c."notnull" OR c.pk > 0 AS required, c.pk AS key
			FROM sqlite_schema m JOIN pragma_table_info(m.name) c
			WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'
			ORDER BY m.name, c.name`,
		)
		.all();
}

const postgresColumns = `SELECT c.relname AS "table", a.attname AS name,
		CASE format_type(a.atttypid, NULL) WHEN 'bigint' THEN 'INTEGER' WHEN 'bytea' THEN 'BLOB' ELSE 'TEXT' END AS type,
		CASE WHEN a.attnotnull THEN 1 ELSE 0 END AS required,
		coalesce(array_position(i.indkey::smallint[], a.attnum) + 1, 0) AS key,
		l.collname AS collation
	FROM pg_class c
	JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
	LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
	LEFT JOIN pg_collation l ON l.oid = a.attcollation
	WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
	ORDER BY c.relname COLLATE "C", a.attname COLLATE "C"`;

const ofPostgresAlone = ['leaders', 'outcomes'];
const idRow = 'id_sequences';

describePostgres('the schema on PostgreSQL', (server) => {
	it('has the tables, columns, types and keys of SQLite, and compares texts by bytes', async () => {
		const url = await server.createDatabase();
		const store = await openPostgresStore({ ...{ url, clock: systemClock, mode: 'create' } });
		await store.close();
		const rows = (await ask(url, postgresColumns)) as unknown as (Column & { collation: string | null })[];
		const shown = ({ table, name, type, required, key }: Column) =>
			`${table}.${name} ${type}${required === 1 ? ' NOT NULL' : ''}${key > 0 ? ` key ${key}` : ''}`;
		const shared = rows.filter(({ table }) => !ofPostgresAlone.includes(table));
		const own = ofSqlite().filter(({ table }) => table !== idRow);
		expect(shared.map(shown)).toEqual(own.map(shown));
		expect(rows.filter(({ type, collation }) => type === 'TEXT' && collation !== 'C').map(shown)).toEqual([]);
	});

	it('is migrated, and a newer schema is rejected', async () => {
		const url = await server.createProject();
		const open = () => openPostgresStore({ url, clock: systemClock, mode: 'create' });
		await (await open()).close();
		const database = new Database({
			...{ place: readPlace(url), size: 1, role: 'cli', keys: [], lockTimeoutMs: 5_000, isTrial: false },
		});
		onTestFinished(() => database.close());
		const version = schemaVersion + 1;
		const next = {
			version,
			name: 'next',
			sql: 'CREATE TABLE later (x BIGINT); INSERT INTO later VALUES (1)',
		};
		await database.write((session) => migrate(session, { name: 'x', now: 7 }, [...migrations, next]));
		expect(
			await database.read(({ sql }) =>
				sql.tuples('SELECT m.version, m.name, x FROM migrations m, later ORDER BY m.version'),
			),
		).toEqual([...migrations.map((done) => [done.version, done.name, 1]), [version, 'next', 1]]);
		await expect(open()).rejects.toMatchObject({
			code: 'newer_schema',
			message: expect.stringContaining(`has schema ${version}, but this mailctl knows only ${schemaVersion}`),
		});
	});
});
