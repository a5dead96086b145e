import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../src/api/datetime.js';
import { connect } from '../../src/cli/connect.js';
import { openStore } from '../../src/store/open.js';
import { apiSuite, type Subject } from '../contract/api.suite.js';
import { audiencesSuite } from '../contract/audiences.suite.js';
import { campaignJobsSuite } from '../contract/campaigns.suite.js';
import { extensionsSuite } from '../contract/extensions.suite.js';
import { peopleSuite } from '../contract/people.suite.js';
import { fixedClock } from '../contract/store/fixture.js';
import { suppressionsSuite } from '../contract/suppressions.suite.js';
import { dependencies } from '../support/connect.js';

async function open({
	clock,
	settings = {},
}: {
	clock?: Clock;
	settings?: Record<string, string>;
} = {}): Promise<Subject & { db: string }> {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-contract-'));
	const db = join(folder, 'engine.db');
	const connection = await connect(
		{ kind: 'local', url: db, create: true },
		dependencies(clock === undefined ? {} : { clock }),
	);
	const sender = 'news@example.com';
	await connection.api.senders.create({ from_email: sender });
	await connection.local?.settings.set({ public_url: 'https://mail.example.com', ...settings });
	return {
		api: connection.api,
		db,
		sender,
		close: async () => {
			await connection.close();
			await rm(folder, { recursive: true });
		},
	};
}

apiSuite('the embedded engine', () => open());
extensionsSuite('the embedded engine', () => open());
suppressionsSuite('the embedded engine', () => open());
peopleSuite('the embedded engine', () => open());
campaignJobsSuite('the embedded engine', () => open());
audiencesSuite('the embedded engine', async () => {
	const subject = await open({ clock: fixedClock, settings: { time_zone: 'Europe/Oslo' } });
	const store = await openStore(subject.db, { clock: fixedClock, mode: 'existing' });
	return { ...subject, store, close: () => store.close().then(subject.close) };
});
