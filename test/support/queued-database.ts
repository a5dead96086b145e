import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/api/datetime.js';
import { contentSha256 } from '../../src/content/hash.js';
import { openStore } from '../../src/store/open.js';
import { openPostgresStore } from '../../src/store/postgres/store.js';
import type { OpenOptions } from '../../src/store/sqlite/store.js';
import type { Store } from '../../src/store/store.js';
import { isPostgres } from '../../src/store/url.js';

export function openAt(path: string, options: Pick<OpenOptions, 'clock' | 'mode' | 'role'>): Promise<Store> {
	return isPostgres(path) ? openPostgresStore({ url: path, ...options }) : openStore(path, options);
}

export async function createQueuedDatabase(
	count: number,
	{ text = 'Hello #email#', path = newPath() }: { text?: string; path?: string } = {},
): Promise<{ path: string; ids: string[] }> {
	const store = await openAt(path, { clock: systemClock, mode: 'create' });
	const now = systemClock.now();
	await store.writes.createSender({ from_email: 'news@example.com', email_key: 'news@example.com', now });
	const content = { subject: 'Hi', text, html: null, disable_inline: true };
	const recipients = Array.from({ length: count }, (_, index) => {
		const to = `r${index}@example.net`;
		return { id: randomUUID(), to, to_key: to };
	});
	for (let first = 0; first < count; first += 1_000) {
		const accepted = await store.writes.acceptSubmission({
			id: randomUUID(),
			type: 'TRANSACTIONAL',
			envelope: { from: 'news@example.com', reply_to: [], cc: [], bcc: [], headers: {} },
			from_key: 'news@example.com',
			tag: null,
			content,
			content_sha256: contentSha256(content),
			variables: ['email'],
			context: {},
			list_id: null,
			campaign: null,
			recipients: recipients.slice(first, first + 1_000),
			now,
			key: null,
		});
		if (accepted.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(accepted)}`);
	}
	await store.close();
	return { path, ids: recipients.map(({ id }) => id) };
}

function newPath(): string {
	return join(mkdtempSync(join(tmpdir(), 'mailctl-queue-')), 'mail.db');
}
