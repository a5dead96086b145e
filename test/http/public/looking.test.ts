import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Delivered, type Served, startServed, unsubscribeUrl } from '../../support/served.js';

const agents = {
	browser: { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/120.0' },
	scanner: { 'User-Agent': 'Barracuda Sentinel (EE)' },
	prefetch: { 'User-Agent': 'Mozilla/5.0 Chrome/120.0', 'Sec-Purpose': 'prefetch;prerender' },
	none: { 'User-Agent': '' },
};
const tables = ['lists', 'subscribers', 'suppressions', 'erased', 'campaigns', 'submissions'];

describe('a link scanner', () => {
	let served: Served;
	let path: string;
	let mail: Delivered;
	beforeAll(async () => {
		path = join(mkdtempSync(join(tmpdir(), 'mailctl-looking-')), 'mail.db');
		served = await startServed(path);
		const list = await served.engine.lists.create({ name: 'Readers', email_reason: 'r' });
		await served.engine.subscribers(list.id).create({ email: 'ada@example.org' });
		const html_body =
			'<a href="https://shop.example/">one</a> <a href="#unsubscribe_url#">out</a> <a href="#view_url#">see</a>';
		mail = await served.deliver({ html_body, list_id: list.id });
		served.later(60);
	});
	afterAll(() => served.close());

	const snapshot = () => {
		const db = new Database(path, { readonly: true });
		try {
			const rows = tables.map((table) => db.prepare(`SELECT * FROM ${table}`).all());
			const states = db.prepare('SELECT uuid, state, wake_at FROM messages').all();
			return JSON.stringify([rows, states]);
		} finally {
			db.close();
		}
	};
	const addresses = () => {
		const shown = [...(mail.email.html ?? '').matchAll(/(?:href|src)="(http[^"]*)"/g)].map(
			([, url = '']) => url,
		);
		const all = [...shown, unsubscribeUrl(mail)].filter((url) => url.startsWith(served.url));
		const leaving = unsubscribeUrl(mail);
		return [
			...all,
			`${leaving}/`,
			`${leaving}?List-Unsubscribe=One-Click`,
			`${leaving}?confirm=1&_method=POST`,
		];
	};

	it('finds a click, an open, an unsubscribe and a view URL in a mail', () => {
		const kinds = new Set(addresses().map((url) => new URL(url).pathname.split('/')[1]));
		expect([...kinds].sort()).toEqual(['c', 'o', 'u', 'v']);
	});

	it.each(
		['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'].flatMap((method) =>
			Object.keys(agents).map((agent) => [method, agent] as const),
		),
	)('unsubscribes nobody by sending %s (user agent: %s)', async (method, agent) => {
		const before = snapshot();
		for (const url of addresses()) {
			const headers = Object.entries(agents).find(([name]) => name === agent)?.[1] ?? {};
			const override = { 'X-HTTP-Method-Override': 'POST' };
			const answer = await fetch(url, { method, headers: { ...headers, ...override }, redirect: 'manual' });
			await answer.arrayBuffer();
		}
		await served.settled();
		expect(snapshot()).toBe(before);
		const again = { from: 'news@example.com', to: ['ada@example.org'], subject: 'S', text_body: 'T' };
		const { messages_created } = await served.engine.send({ ...again, type: 'BULK' });
		expect(messages_created).toBe(1);
	});

	it('unsubscribes the person if it sends a POST', async () => {
		const before = snapshot();
		expect((await fetch(unsubscribeUrl(mail), { method: 'POST' })).status).toBe(200);
		expect(snapshot()).not.toBe(before);
	});
});
