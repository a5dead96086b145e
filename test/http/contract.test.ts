// The contract over real sockets: client → server → engine, and any service that MAILCTL_CONTRACT_URL names.
import { describe, it } from 'vitest';
import { createClient } from '../../src/http/client/client.js';
import { openStore } from '../../src/store/open.js';
import { apiSuite, type Subject } from '../contract/api.suite.js';
import { audiencesSuite } from '../contract/audiences.suite.js';
import { campaignJobsSuite } from '../contract/campaigns.suite.js';
import { extensionsSuite } from '../contract/extensions.suite.js';
import { peopleSuite } from '../contract/people.suite.js';
import { fixedClock } from '../contract/store/fixture.js';
import { suppressionsSuite } from '../contract/suppressions.suite.js';
import { clientOptions } from '../support/client.js';
import { serveEngine } from '../support/served-engine.js';

async function served(more: Parameters<typeof serveEngine>[0] = {}): Promise<Subject & { db: string }> {
	const { url, db, token, sender, close } = await serveEngine(more);
	const client = createClient(clientOptions({ baseUrl: url, token }));
	return {
		api: client.api,
		db,
		sender,
		close: async () => {
			await client.close();
			await close();
		},
	};
}

apiSuite('client → server → engine', () => served());
extensionsSuite('client → server → engine', () => served());
suppressionsSuite('client → server → engine', () => served());
peopleSuite('client → server → engine', () => served());
campaignJobsSuite('client → server → engine', () => served());
audiencesSuite('client → server → engine', async () => {
	const subject = await served({ clock: fixedClock, settings: { time_zone: 'Europe/Oslo' } });
	const store = await openStore(subject.db, { clock: fixedClock, mode: 'existing' });
	return { ...subject, store, close: () => store.close().then(subject.close) };
});

const needed = ['imports', 'campaigns', 'messages', 'templates', 'subscribers', 'fields'] as const;

const { MAILCTL_CONTRACT_URL, MAILCTL_CONTRACT_TOKEN, MAILCTL_CONTRACT_SENDER } = process.env;
if (MAILCTL_CONTRACT_URL !== undefined) {
	const options = clientOptions({ baseUrl: MAILCTL_CONTRACT_URL, token: MAILCTL_CONTRACT_TOKEN ?? null });
	const named = async (): Promise<Subject> => {
		const client = createClient(options);
		return { api: client.api, sender: MAILCTL_CONTRACT_SENDER ?? 'news@example.com', close: client.close };
	};
	apiSuite(MAILCTL_CONTRACT_URL, named);
	const probe = createClient(options);
	const { ext } = await probe.api.capabilities();
	await probe.close();
	const lacking = needed.filter((name) => ext[name] === undefined);
	if (lacking.length === 0) extensionsSuite(MAILCTL_CONTRACT_URL, named);
	else
		describe.skip(`the extension tests on ${MAILCTL_CONTRACT_URL}`, () =>
			it(`are skipped because the service lacks ${lacking.join(', ')}`, () => {}));
}
