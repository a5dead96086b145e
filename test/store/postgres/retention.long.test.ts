import pg from 'pg';
import { onTestFinished } from 'vitest';
import { onlyLinks } from '../../../src/content/links.js';
import { expiries } from '../../../src/store/core/retention.js';
import { createPipeline } from '../../../src/store/postgres/pipeline.js';
import { createSql } from '../../../src/store/postgres/sql.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import { fixedClock } from '../../contract/store/fixture.js';
import { type Kept, retentionSuite } from '../../contract/store/retention.js';
import { describePostgres } from '../../support/postgres.js';

describePostgres('retention', (server) => {
	const open = async (): Promise<Kept> => {
		const url = await server.createDatabase();
		const store = await openPostgresStore({ url, clock: fixedClock, mode: 'create' });
		onTestFinished(() => store.close());
		const client = new pg.Client({ connectionString: url });
		await client.connect();
		onTestFinished(() => client.end());
		const sql = createSql(createPipeline(client));
		return {
			store,
			expire: async (now) => {
				for (const { drop, slice } of expiries) {
					let after: number | null = 0;
					while (after !== null) {
						await sql.run('BEGIN');
						const { next }: { next: number | null } = await drop(sql, {
							now,
							limit: slice,
							after,
							onlyLinks,
						});
						await sql.run('COMMIT');
						after = next;
					}
				}
			},
			run: async (text) => void (await sql.run(text)),
			count: async (text) => await sql.number(text),
		};
	};
	retentionSuite(open);
});
