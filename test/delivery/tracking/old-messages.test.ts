import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createContentCache } from '../../../src/content/cache.js';
import { contentSha256 } from '../../../src/content/hash.js';
import { onlyLinks } from '../../../src/content/links.js';
import { createTracking } from '../../../src/delivery/tracking/lookup.js';
import { openStore } from '../../../src/store/open.js';
import { openConnection } from '../../../src/store/sqlite/connection.js';
import { expiries } from '../../../src/store/sqlite/core.js';
import { createSql } from '../../../src/store/sqlite/sql.js';
import {
	accepted250,
	day,
	deliver,
	eventOf,
	fixedClock,
	newList,
	newSubscriber,
	noon,
	send,
	verify,
} from '../../contract/store/fixture.js';
import { readHere } from '../../support/read-here.js';

const html =
	'<body><p>Hello #name#</p><a href="#view_url#">view</a><a href=https://a.example/?n=#name#>a</a><a href="https://b.example/">b</a></body>';
const content = { subject: 'News', text: 'News', html, disable_inline: true };
const ofContent = { content, content_sha256: contentSha256(content), variables: ['name', 'view_url'] };

async function mailed() {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-old-'));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	const path = join(folder, 'mailctl.db');
	const store = await openStore(path, { clock: fixedClock, mode: 'create', eventDelayMs: 0 });
	onTestFinished(() => store.close());
	await verify(store);
	const list_id = await newList(store);
	const ann = await newSubscriber(store, list_id, 'ann@example.org', { name: 'Ann & Bob' });
	await send(store, ['ann@example.org'], { ...ofContent, type: 'BULK', list_id });
	const message = await deliver(store, { kind: 'sent', reply: accepted250 });
	const contents = createContentCache({ maxBytes: 1_000_000, askHtml: readHere });
	const tracking = createTracking({
		...{ reads: store.reads, writes: store.writes, contents, clock: fixedClock },
		links: async () => ({ publicUrl: 'https://mail.example.com', keyring: null }),
	});
	const expire = (values: Record<string, string>, now: number) => {
		const db = openConnection({ path, mode: 'existing', role: 'writer', busyTimeoutMs: 1_000 });
		const keep = db.prepare('INSERT OR REPLACE INTO settings VALUES (?, ?, 0)');
		for (const [name, value] of Object.entries(values)) keep.run(name, value);
		for (const { drop } of expiries) drop(createSql(db), { now, limit: 10, after: 0, onlyLinks });
		db.close();
	};
	return { store, list_id, ann, message, tracking, contents, expire };
}

it.each([
	{ keep_messages: '30d' },
	{ keep_bodies: '30d' },
])('links keep their targets after the retention period ends: %o', async (values) => {
	const { store, message, list_id, ann, tracking, contents, expire } = await mailed();
	expire(values, noon + 31 * day);
	const found = await tracking.find(message);
	if (found === null) throw new Error('its links are gone');
	expect(found).toMatchObject({ from: 'Desk <desk@example.org>', list_id });
	expect(await tracking.link(found, 0)).toBe('https://a.example/?n=Ann%20%26%20Bob');
	expect(await tracking.link(found, 1)).toBe('https://b.example/');
	expect(await tracking.link(found, 2)).toBe(null);
	expect(await tracking.view(found)).toBe(null);
	expect(await tracking.listName(found)).toBe('News');
	await tracking.record(eventOf(message, 'UNSUBSCRIBED', { at: noon + 31 * day }));
	expect(await store.reads.getSubscriber({ list_id, id: ann.id })).toMatchObject({ is_active: false });
	// Sending the same content again stores its body again, although the cache holds only its links.
	const again = await send(store, ['bob@example.org'], { ...ofContent, now: noon + 32 * day });
	const stored = await store.reads.getSubmission({ id: again.submission });
	if (stored === null) throw new Error('not stored');
	const compiled = await contents.get(stored.content_sha256, stored.content);
	expect(compiled.preview({ variables: { name: 'Bob' } }).html).toContain('Hello Bob');
});

it('links of a deleted subscriber work until the person is erased', async () => {
	const { store, message, list_id, ann, tracking, expire } = await mailed();
	expire({ keep_messages: '30d' }, noon + 31 * day);
	await store.writes.deleteSubscriber({ list_id, id: ann.id, now: noon });
	expect(await tracking.find(message)).toMatchObject({ to: 'ann@example.org' });
	const fresh = { id: 1, secret: 'c2VjcmV0' };
	await store.writes.erasePerson({ email_key: 'ann@example.org', fresh, now: noon });
	expect(await tracking.find(message)).toBe(null);
});
