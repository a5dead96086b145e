import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { trackedEvent } from '../../../src/delivery/tracking/events.js';
import { signClickTokens } from '../../../src/delivery/tracking/tokens.js';
import { writeSettings } from '../../../src/engine/settings.js';
import { Recorder } from '../../../src/http/public/visits.js';
import { eventually } from '../../support/eventually.js';
import { type Delivered, type Served, startServed, unsubscribeUrl } from '../../support/served.js';

const browser =
	'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36';
const html =
	'<p>Hi #name#</p><a href="https://shop.example/?a=1&amp;who=#email#">one</a> <a href="mailto:x@y.z">m</a>' +
	' <a href="#unsubscribe_url#">out</a> <a href="#view_url#">see</a> <a href="http://two.example/b">two</a>' +
	' <a href="#site#">three</a>';

let served: Served;
let path: string;
beforeEach(async () => {
	path = join(mkdtempSync(join(tmpdir(), 'mailctl-public-')), 'mail.db');
	served = await startServed(path);
});
afterEach(() => served.close());

const mail = async (over: Parameters<Served['deliver']>[0] = {}) => {
	const delivered = await served.deliver({
		html_body: html,
		context: { name: 'Ada', site: 'https://three.example/x y' },
		...over,
	});
	served.later(60);
	return delivered;
};

const ask = (url: string, init: RequestInit = {}) =>
	fetch(url, { redirect: 'manual', ...init, headers: { 'User-Agent': browser, ...init.headers } });

interface EventRow {
	type: string;
	link: number | null;
	machine: number;
	url: string | null;
	user_agent: string | null;
	ip: string | null;
}

function events(): EventRow[] {
	const db = new Database(path, { readonly: true });
	try {
		return db
			.prepare<[], EventRow>('SELECT type, link, machine, url, user_agent, ip FROM events ORDER BY id')
			.all();
	} finally {
		db.close();
	}
}

const recorded = (count: number) => eventually(async () => expect(await events()).toHaveLength(count));

describe('the pixel', () => {
	it('is always the same picture, and counts an open with a valid token', async () => {
		const { pixel } = await mail();
		const answer = await ask(pixel);
		expect(answer.status).toBe(200);
		expect(Object.fromEntries(answer.headers)).toMatchObject({
			'content-type': 'image/gif',
			'cache-control': 'no-store',
			'content-length': '43',
			'referrer-policy': 'no-referrer',
		});
		const picture = Buffer.from(await answer.arrayBuffer());
		expect(picture.toString('latin1', 0, 6)).toBe('GIF89a');
		await recorded(1);
		expect(events()).toEqual([
			{ type: 'OPENED', link: null, machine: 0, url: null, user_agent: browser, ip: '127.0.0.1' },
		]);
		for (const bad of [pixel.replace('.gif', 'x.gif'), `${served.url}/o/`, `${served.url}/o/a/b?c`]) {
			const same = await ask(bad);
			expect(same.status).toBe(200);
			expect(Buffer.from(await same.arrayBuffer()).equals(picture)).toBe(true);
		}
		expect(events()).toHaveLength(1);
	});

	it('counts HEAD as an open by a bot, and sends no body', async () => {
		const { pixel } = await mail();
		const answer = await ask(pixel, { method: 'HEAD' });
		expect([answer.status, answer.headers.get('content-length')]).toEqual([200, '43']);
		await recorded(1);
		expect(events()[0]).toMatchObject({ type: 'OPENED', machine: 1 });
	});

	it('is a picture even if the store fails, and the failure is logged', async () => {
		const { pixel } = await mail();
		served.ports.record = () => Promise.reject(new Error('disk full'));
		expect((await ask(pixel)).status).toBe(200);
		expect(served.failures).toEqual([new Error('disk full')]);
		served.ports.keyring = () => Promise.reject(new Error('locked'));
		expect((await ask(pixel)).status).toBe(200);
		expect(served.failures).toHaveLength(2);
	});

	it('counts as one opened mail in the report, however often it is loaded', async () => {
		const { pixel } = await mail();
		const answers = await Promise.all(Array.from({ length: 20 }, () => ask(pixel)));
		expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
		await served.settled();
		expect(events()).toHaveLength(20);
		expect((await served.engine.report({})).total).toMatchObject({
			sent: 1,
			opened: 1,
			opened_percent: '100',
		});
	});

	it('appears in the events of its message, with separate counts for people and bots', async () => {
		const { id, pixel, links } = await mail();
		await ask(pixel);
		await ask(pixel);
		await ask(pixel, { method: 'HEAD' });
		await ask(links[0] ?? '');
		await served.settled();
		const { events: told = [] } = await served.engine.ext.messages.get(id);
		expect(told.map(({ type, count, link, machine }) => [type, count, link, machine])).toEqual([
			['CREATED', 1, null, false],
			['SENT', 1, null, false],
			['OPENED', 2, null, false],
			['OPENED', 1, null, true],
			['REDIRECTED', 1, 'https://shop.example/?a=1&who=ada%40example.org', false],
		]);
		const times = told.map(({ time }) => time);
		expect(times).toEqual([...times].sort());
	});

	it('does not count an open, and logs the loss, if 20,000 events wait for the store', async () => {
		const lost: unknown[] = [];
		let answer: () => void = () => undefined;
		const silent = new Promise<void>((resolve) => {
			answer = resolve;
		});
		const store = { record: () => silent };
		const recorder = new Recorder({
			keyring: async () => null,
			record: () => store.record(),
			failed: (error) => lost.push(error),
		});
		const event = trackedEvent({
			message: 'm',
			type: 'OPENED',
			at: 1,
			link: null,
			machine: false,
			visitor: { ip: null, userAgent: null },
		});
		for (let i = 0; i < 20_001; i++) recorder.later(() => event);
		expect(lost).toEqual([new Error('an open or click was lost: the queue of 20000 events is full')]);
		answer();
		await recorder.settled();
		store.record = () => Promise.reject(new Error('disk full'));
		recorder.later(() => event);
		await recorder.settled();
		expect(lost[1]).toEqual(new Error('disk full'));
	});
});

describe('a tracked link', () => {
	it('redirects to its target, which contains the recipient’s values', async () => {
		const { links } = await mail();
		expect(links).toHaveLength(3);
		const targets = [];
		for (const link of links) {
			const answer = await ask(link);
			expect(answer.status).toBe(302);
			expect(answer.headers.get('cache-control')).toBe('no-store');
			expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
			targets.push(answer.headers.get('location'));
		}
		expect(targets).toEqual([
			'https://shop.example/?a=1&who=ada%40example.org',
			'http://two.example/b',
			'https://three.example/x%20y',
		]);
		await recorded(3);
		expect(events()).toEqual([
			expect.objectContaining({ type: 'REDIRECTED', link: 0, machine: 0, url: targets[0] }),
			expect.objectContaining({ type: 'REDIRECTED', link: 1, machine: 0, url: targets[1] }),
			expect.objectContaining({ type: 'REDIRECTED', link: 2, machine: 1, url: targets[2] }),
		]);
	});

	it('gives a 404 page, and never a redirect, if it differs from the link in the mail', async () => {
		const { links, pixel, id } = await mail();
		const [first = '', second = ''] = links;
		const o = /\/o\/([\w-]+)/.exec(pixel)?.[1] ?? '';
		const tokenAt = first.lastIndexOf('/') + 1;
		const bad = [
			first.slice(0, -1),
			`${first}A`,
			`${first}/`,
			first.slice(0, tokenAt + 50),
			first.slice(0, tokenAt + 50) + second.slice(tokenAt + 50, -1),
			`${served.url}/c/${o}${first.slice(-8)}`,
			`${served.url}/c/${id}`,
			`${served.url}/c/https://evil.example/`,
			`${served.url}/c/?url=https://evil.example/`,
		];
		for (const url of bad) {
			const answer = await ask(url);
			expect([url, answer.status, answer.headers.get('location')]).toEqual([url, 404, null]);
			expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
			expect(await answer.text()).toContain('This link does not work');
		}
		expect(events()).toEqual([]);
	});

	it('with an invalid target becomes # in the mail, and its URL gives a 404 even with a valid signature', async () => {
		const { email, links, id } = await mail({ context: { site: 'javascript:alert(1)' } });
		expect(links).toHaveLength(2);
		expect(email.html).toContain('<a href="#">three</a>');
		const keyring = await served.ports.keyring();
		const tokens = keyring === null ? null : signClickTokens(keyring, id, 4);
		const signed = (tokens?.ends ?? []).map((end) => `${tokens?.begin}${end}`);
		expect(`${served.url}/c/${signed[0]}`).toBe(links[0]);
		for (const token of signed.slice(2)) expect((await ask(`${served.url}/c/${token}`)).status).toBe(404);
	});

	it('redirects if the click cannot be recorded, and gives a 503 if its target cannot be read', async () => {
		const { links } = await mail();
		served.ports.record = () => Promise.reject(new Error('disk full'));
		expect((await ask(links[0] ?? '')).status).toBe(302);
		served.ports.find = () => Promise.reject(new Error('locked'));
		const answer = await ask(links[0] ?? '');
		expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '60']);
		expect(await answer.text()).toContain('This did not work');
	});

	it('works after the list and the subscriber are deleted', async () => {
		const list = await served.engine.lists.create({ name: 'People', email_reason: 'x' });
		await served.engine.subscribers(list.id).create({ email: 'ada@example.org', name: 'Ada' });
		const { links } = await mail({ context: { site: 'https://three.example/' } });
		await served.engine.lists.delete(list.id);
		served.later(40 * 86_400);
		expect((await ask(links[0] ?? '')).headers.get('location')).toBe(
			'https://shop.example/?a=1&who=ada%40example.org',
		);
	});
});

describe('unsubscribing', () => {
	const isSuppressed = async () => {
		const { messages } = await served.engine.send({
			from: 'news@example.com',
			to: ['ada@example.org'],
			subject: 'again',
			text_body: 'x',
			type: 'BULK',
		});
		return messages.length === 0;
	};

	it('is stored before the server answers, even if the person sends the form twice', async () => {
		const url = unsubscribeUrl(await mail());
		for (let time = 1; time <= 2; time++) {
			const answer = await ask(url, { method: 'POST' });
			expect(answer.status).toBe(200);
			expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
			expect(events()).toHaveLength(time);
			expect(await answer.text()).toContain(
				'a…\u2060@example.org will get no more newsletters from News (news@example.com).',
			);
		}
		expect(events()[0]).toMatchObject({ type: 'UNSUBSCRIBED', machine: 0 });
		expect(await isSuppressed()).toBe(true);
		expect((await served.engine.report({})).total.unsubscribed_percent).toBe(100);
	});

	it.each<[string, () => RequestInit['body']]>([
		['urlencoded', () => new URLSearchParams({ 'List-Unsubscribe': 'One-Click' })],
		[
			'multipart',
			() => {
				const form = new FormData();
				form.set('List-Unsubscribe', 'One-Click');
				return form;
			},
		],
	])('works with one click in the mail program (RFC 8058): %s', async (_kind, body) => {
		const url = unsubscribeUrl(await mail());
		const answer = await ask(url, { method: 'POST', body: body() ?? null });
		expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
		expect(await answer.text()).toBe('Unsubscribed.\n');
		expect(events()).toHaveLength(1);
	});

	describe('from the mail of a list', () => {
		let lists: number[];
		let url: string;
		beforeEach(async () => {
			lists = [];
			for (const name of ['Birds & <bees>', 'Trees']) {
				const { id } = await served.engine.lists.create({ name, email_reason: 'x' });
				await served.engine.subscribers(id).create({ email: 'ada@example.org', name: 'Ada' });
				lists.push(id);
			}
			url = unsubscribeUrl(await mail({ list_id: lists[0] ?? 0 }));
		});
		const active = async () => {
			const found = await Promise.all(lists.map((id) => served.engine.lists.get(id)));
			return found.map((list) => list.active_subscribers_count);
		};
		const post = async (fields: Record<string, string>) =>
			(await ask(url, { method: 'POST', body: new URLSearchParams(fields) })).text();

		it('offers two choices: that list, which is preselected, and all mail', async () => {
			const page = await (await ask(url)).text();
			expect(page).toContain(
				'<input type="radio" name="scope" value="list" checked><span>This list: “Birds &amp; &lt;bees&gt;”</span>',
			);
			expect(page).toContain(
				'<input type="radio" name="scope" value="all"><span>All mail from News (news@example.com)</span>',
			);
		});

		it('shows the list’s public name in the question and in the answer', async () => {
			const [id = 0] = lists;
			await served.engine.ext.lists.patch(id, { public_name: 'Bird & tree' });
			expect((await (await fetch(url)).text()).split('\n').filter((line) => /bees/.test(line))).toEqual([]);
			expect(await (await fetch(url)).text()).toContain('This list: “Bird &amp; tree”');
			expect(await post({ scope: 'list' })).toContain('no more mail from the list “Bird &amp; tree”');
			await served.engine.ext.lists.patch(id, { public_name: '' });
			expect(await (await fetch(url)).text()).toContain('This list: “Birds &amp; &lt;bees&gt;”');
		});

		it('ends only the mail of that list, and names the list, unless the person chooses all mail', async () => {
			expect(await post({ scope: 'list' })).toContain(
				'a…\u2060@example.org will get no more mail from the list “Birds &amp; &lt;bees&gt;”. Other lists are not affected.',
			);
			expect(await active()).toEqual([0, 1]);
			expect(await post({ scope: 'all' })).toContain(
				'a…\u2060@example.org will get no more newsletters from News (news@example.com).',
			);
			expect(await active()).toEqual([0, 0]);
		});

		it.each([
			[{ 'List-Unsubscribe': 'One-Click' }],
			[{ 'List-Unsubscribe': 'One-Click', scope: 'all' }],
			[{ scope: 'nonsense' }],
			[{}],
		])('ends only the mail of that list if the form sends %j', async (fields) => {
			await post(fields);
			expect(await active()).toEqual([0, 1]);
		});

		it('offers no choice if unsubscribe_scope is all, or if the list is deleted', async () => {
			const settings = (unsubscribe_scope: string | null) =>
				served.store.writes.putSettings({ values: { unsubscribe_scope }, now: 0 });
			await settings('all');
			expect(await (await ask(url)).text()).not.toContain('radio');
			await settings(null);
			expect(await (await ask(url)).text()).toContain('radio');
			await served.engine.lists.delete(lists[0] ?? 0);
			expect(await (await ask(url)).text()).not.toContain('radio');
			lists = lists.slice(1);
			expect(await post({ scope: 'list' })).toContain('no more newsletters from News (news@example.com)');
			expect(await active()).toEqual([0]);
		});

		it('offers the same choice again after a failure', async () => {
			served.ports.record = () => Promise.reject(new Error('disk full'));
			expect(await post({ scope: 'all' })).toContain('<input type="hidden" name="scope" value="all">');
		});
	});

	it('gives a 503 page if the store fails', async () => {
		const url = unsubscribeUrl(await mail());
		served.ports.record = () => Promise.reject(new Error('disk full'));
		const answer = await ask(url, { method: 'POST' });
		expect(answer.status).toBe(503);
		expect(await answer.text()).toContain('You are not unsubscribed yet');
	});

	it('fails with a 404 page if the token is bad, and with a 405 if the method is not allowed', async () => {
		const url = unsubscribeUrl(await mail());
		for (const method of ['GET', 'POST']) expect((await ask(`${url}x`, { method })).status).toBe(404);
		const answer = await ask(url, { method: 'DELETE' });
		expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
		expect(events()).toEqual([]);
	});
});

describe('every page', () => {
	it('has the reader’s language, and a Vary header', async () => {
		const { id } = await served.engine.lists.create({ name: 'Birds', email_reason: 'x' });
		await served.engine.subscribers(id).create({ email: 'ada@example.org' });
		const url = unsubscribeUrl(await mail({ list_id: id }));
		const read = async (path: string, init: RequestInit = {}) => {
			const headers = { 'Accept-Language': 'de-AT,de;q=0.9,en;q=0.5' };
			const answer = await ask(path, { ...init, headers });
			const varying = [answer.headers.get('content-language'), answer.headers.get('vary')];
			expect(varying).toEqual(['de', 'Accept-Language']);
			return /<html lang="de">[\s\S]*<h1>(.*)<\/h1>/.exec(await answer.text())?.[1];
		};
		expect(await read(url)).toBe('Abmelden');
		expect(await read(url, { method: 'POST' })).toBe('Sie sind abgemeldet');
		for (const path of ['/u/x', '/c/x', '/v/x'])
			expect(await read(`${served.url}${path}`)).toBe('Dieser Link funktioniert nicht');
		served.ports.record = () => Promise.reject(new Error('disk full'));
		expect(await read(url, { method: 'POST' })).toBe('Das hat nicht geklappt');
		served.ports.keyring = () => Promise.reject(new Error('locked'));
		for (const path of ['/u/x', '/c/x', '/v/x'])
			expect(await read(`${served.url}${path}`)).toBe('Das hat nicht geklappt');
	});

	it('has the name, logo and colour from the settings', async () => {
		const url = unsubscribeUrl(await mail());
		const values = {
			page_sender_name: 'Birds & Co',
			page_logo_url: 'https://birds.example/logo.png?2',
			page_color: '#0B6E4F',
		};
		await writeSettings({ store: served.store, clock: systemClock }, values);
		for (const path of [url, `${served.url}/v/x`]) {
			const answer = await ask(path);
			expect(answer.headers.get('content-security-policy')).toContain(
				' img-src https://birds.example/logo.png; ',
			);
			const page = await answer.text();
			expect(page).toContain(
				'<header><img src="https://birds.example/logo.png?2" alt="Birds &amp; Co"></header>',
			);
			expect(page).toContain('--button: #0b6e4f;');
		}
		expect(await (await ask(url)).text()).toContain(
			'Stop sending newsletters from Birds &amp; Co to a…\u2060@example.org?',
		);
	});
});

describe('the browser view of a mail', () => {
	const viewUrl = ({ email }: Delivered) => /href="([^"]*\/v\/[^"]*)"/.exec(email.html ?? '')?.[1] ?? '';

	it('has the recipient’s content with unchanged links, and counts no open', async () => {
		const answer = await ask(viewUrl(await mail()));
		const body = await answer.text();
		expect(answer.status).toBe(200);
		expect(body).toContain(
			'<p>Hi Ada</p><a href="https://shop.example/?a=1&amp;who=ada%40example.org">one</a>',
		);
		expect(body).not.toMatch(/\/[oc]\//);
		expect(events()).toEqual([]);
	});

	it('is a readable page for a mail without HTML', async () => {
		const { email } = await served.deliver({
			subject: 'Plain <news>',
			text_body: 'Hello <you>,\nsee https://x.example/a?b=1&c=2.\n#view_url#',
		});
		const url = /http:\S+\/v\/\S+/.exec(email.text ?? '')?.[0] ?? '';
		const answer = await ask(url);
		expect(answer.status).toBe(200);
		const body = await answer.text();
		expect(body).toContain('<h1>Plain &lt;news&gt;</h1>');
		expect(body).toContain(
			'Hello &lt;you&gt;,\nsee <a href="https://x.example/a?b=1&amp;c=2" rel="noreferrer nofollow">https://x.example/a?b=1&amp;c=2</a>.',
		);
	});

	it('with a bad token gives a 404 page', async () => {
		const url = viewUrl(await mail());
		expect((await ask(url.slice(0, -1))).status).toBe(404);
		expect((await ask(url.replace('/v/', '/u/'))).status).toBe(404);
		expect((await ask(url, { method: 'POST' })).headers.get('allow')).toBe('GET, HEAD');
	});
});
