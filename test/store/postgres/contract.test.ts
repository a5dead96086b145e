/** The store's suite on PostgreSQL. */
import { afterAll, beforeAll, describe } from 'vitest';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import { storeSuite } from '../../contract/store.suite.js';
import { noPostgres, type Postgres, startPostgres } from '../../support/postgres.js';

describe.skipIf(noPostgres !== null)(
	`PostgreSQL${noPostgres === null ? '' : ` (skipped: ${noPostgres})`}`,
	() => {
		let server: Postgres;
		let url: string;
		let opened = 0;
		beforeAll(async () => {
			server = await startPostgres();
			url = await server.createDatabase();
		});
		afterAll(() => server.stop());

		// A project of its own: a schema is made in a tenth of the time of a database.
		storeSuite('PostgreSQL', (clock) => {
			opened += 1;
			const place = new URL(url);
			place.searchParams.set('schema', `p${opened}`);
			return openPostgresStore({ url: place.href, clock, mode: 'create' });
		});
	},
);
