import type { Clock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import { createQueuedDatabase } from './queued-database.js';

interface NotifiedDatabase {
	path: string;
	messages: string[];
}

export async function createNotifiedDatabase(
	count: number,
	urls: readonly string[],
	clock: Clock,
): Promise<NotifiedDatabase> {
	const { path, ids } = await createQueuedDatabase(count);
	const store = await openStore(path, { clock, mode: 'existing', eventDelayMs: 0 });
	for (const url of urls) {
		const input = { url, type: 'OPENED' as const, is_auth_enabled: false, login: '', password: '' };
		await store.writes.createWebhook({ input, now: clock.now() });
	}
	await store.writes.putSettings({ values: { allow_private_webhooks: 'true' }, now: clock.now() });
	const fresh = { id: 1, secret: Buffer.alloc(32, 7).toString('base64url') };
	await store.writes.ensureWebhookSecret({ fresh, now: clock.now() });
	for (let first = 0; first < count; first += 500) await open(store, ids.slice(first, first + 500), clock);
	await store.close();
	return { path, messages: ids };
}

async function open(store: Store, messages: readonly string[], clock: Clock): Promise<void> {
	const silent = { link: null, ip: null, user_agent: null, url: null, smtp_code: null, diagnostic: null };
	const events = messages.map((message) => ({
		...{ message, type: 'OPENED' as const, at: clock.now(), machine: false },
		...silent,
	}));
	await store.writes.recordEvents({ events });
}
