import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { need } from '../../src/api/capabilities.js';
import { connect } from '../../src/cli/connect.js';
import { apiSuite, type Subject } from '../contract/api.suite.js';
import { campaignJobsSuite } from '../contract/campaigns.suite.js';
import { extensionsSuite } from '../contract/extensions.suite.js';
import { peopleSuite } from '../contract/people.suite.js';
import { suppressionsSuite } from '../contract/suppressions.suite.js';
import { dependencies } from '../support/connect.js';

async function open(): Promise<Subject> {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-contract-'));
	const connection = await connect(
		{ kind: 'local', url: join(folder, 'engine.db'), create: true },
		dependencies(),
	);
	const sender = 'news@example.com';
	await (await need(connection.api, 'senders')).create({ email: sender });
	await connection.local?.settings.set({ public_url: 'https://mail.example.com' });
	return {
		api: connection.api,
		sender,
		close: async () => {
			await connection.close();
			await rm(folder, { recursive: true });
		},
	};
}

apiSuite('the embedded engine', open);
extensionsSuite('the embedded engine', open);
suppressionsSuite('the embedded engine', open);
peopleSuite('the embedded engine', open);
campaignJobsSuite('the embedded engine', open);
