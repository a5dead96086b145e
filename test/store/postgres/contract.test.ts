/** The store's suite on PostgreSQL, and on the same as if it were a distributed database. */
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import { storeSuite } from '../../contract/store.suite.js';
import { asDistributed, describePostgres } from '../../support/postgres.js';

describePostgres('the store', (server) => {
	storeSuite('PostgreSQL', async (clock) =>
		openPostgresStore({ url: await server.createProject(), clock, mode: 'create' }),
	);
	storeSuite('a distributed database', async (clock) =>
		openPostgresStore({ url: asDistributed(await server.createProject()), clock, mode: 'create' }),
	);
});
