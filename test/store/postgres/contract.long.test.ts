import { openPostgresStore } from '../../../src/store/postgres/store.js';
import { storeSuite } from '../../contract/store.suite.js';
import { describePostgres } from '../../support/postgres.js';

describePostgres('the store', (server) => {
	storeSuite('PostgreSQL', async (clock) =>
		openPostgresStore({ url: await server.createProject(), clock, mode: 'create' }),
	);
});
