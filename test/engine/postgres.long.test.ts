import type { Clock } from '../../src/api/datetime.js';
import { connect } from '../../src/cli/connect.js';
import { openPostgresStore } from '../../src/store/postgres/store.js';
import { apiSuite, type Subject } from '../contract/api.suite.js';
import { audiencesSuite } from '../contract/audiences.suite.js';
import { campaignJobsSuite } from '../contract/campaigns.suite.js';
import { extensionsSuite } from '../contract/extensions.suite.js';
import { peopleSuite } from '../contract/people.suite.js';
import { fixedClock } from '../contract/store/fixture.js';
import { suppressionsSuite } from '../contract/suppressions.suite.js';
import { dependencies } from '../support/connect.js';
import { describePostgres } from '../support/postgres.js';

describePostgres('the engine', (server) => {
	const name = 'the engine on PostgreSQL';
	async function open({
		clock,
		settings = {},
	}: {
		clock?: Clock;
		settings?: Record<string, string>;
	} = {}): Promise<Subject & { db: string }> {
		const db = await server.createProject();
		const connection = await connect(
			{ kind: 'local', url: db, create: true },
			dependencies(clock === undefined ? {} : { clock }),
		);
		const sender = 'news@example.com';
		await connection.api.senders.create({ from_email: sender });
		await connection.local?.settings.set({ public_url: 'https://mail.example.com', ...settings });
		return { api: connection.api, db, sender, close: () => connection.close() };
	}

	apiSuite(name, () => open());
	extensionsSuite(name, () => open());
	suppressionsSuite(name, () => open());
	peopleSuite(name, () => open());
	campaignJobsSuite(name, () => open());
	audiencesSuite(name, async () => {
		const subject = await open({ clock: fixedClock, settings: { time_zone: 'Europe/Oslo' } });
		const store = await openPostgresStore({ url: subject.db, clock: fixedClock, mode: 'existing' });
		return { ...subject, store, close: () => store.close().then(subject.close) };
	});
});
