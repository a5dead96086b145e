import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { need } from '../../../src/api/capabilities.js';
import { iterate, take } from '../../../src/api/pages.js';
import { classify } from '../../../src/cli/frame/exit.js';
import { type Client, createClient } from '../../../src/http/client/client.js';
import { type ClientWishes, clientOptions, failure } from '../../support/client.js';
import {
	type Act,
	emptyPage,
	type HostileService,
	startHostileService,
} from '../../support/hostile-service.js';

const token = 'a-secret-token';
let service: HostileService;
const clients: Client[] = [];

beforeEach(async () => {
	service = await startHostileService();
});
afterEach(async () => {
	for (const client of clients.splice(0)) await client.close();
	await service.close();
});

function client(wishes: Partial<ClientWishes> = {}): Client {
	const made = createClient(clientOptions({ baseUrl: service.url, token, ...wishes }));
	clients.push(made);
	return made;
}

const list = { id: 1, name: 'News' };
const page = (more: object) => ({ ...emptyPage, ...more });
const json = (body: unknown): Act => ({ kind: 'json', body });

describe('an answer outside the contract', () => {
	it.each<[string, Act]>([
		['a page of HTML', { kind: 'text', type: 'text/html', text: '<html><title>Log in</title></html>' }],
		['no body', { kind: 'empty', status: 200 }],
		['JSON that breaks off', { kind: 'text', type: 'application/json', text: '{"count": 1, "resu' }],
		['text that is not UTF-8', { kind: 'raw', text: 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"\xff"' }],
		['JSON 10,000 levels deep', { kind: 'text', text: `${'['.repeat(10_000)}${']'.repeat(10_000)}` }],
		['a header without end', { kind: 'raw', text: `HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(100_000)}\r\n\r\n` }],
		['a list in place of a page', json([list])],
		['a page without results', json({ count: 0, next: null, previous: null })],
		['a page without a count', json({ next: null, previous: null, results: [] })],
		['a page whose count is a text', json(page({ count: '0' }))],
		['a page whose next is a number', json(page({ next: 2 }))],
		['a page without next', json({ count: 0, previous: null, results: [] })],
		['a result without an id', json(page({ count: 1, results: [{ name: 'News' }] }))],
		['a result whose id is a text', json(page({ count: 1, results: [{ id: '1', name: 'News' }] }))],
		['a result that is null', json(page({ count: 1, results: [null] }))],
		['a gzip bomb', { kind: 'bomb', bytes: 65 * 2 ** 20 }],
		['an unknown encoding', { kind: 'json', body: emptyPage, headers: { 'content-encoding': 'zstd, gzip' } }],
		['malformed gzip', { kind: 'json', body: emptyPage, headers: { 'content-encoding': 'gzip' } }],
		['bytes that are not HTTP', { kind: 'raw', text: '220 mail.example.com ESMTP\r\n' }],
	])('causes the error bad_answer with exit 7: %s', async (_, act) => {
		service.answer(act);
		const error = await failure(client({ remote: { retries: 3 } }).api.lists.page({}));
		expect(error).toMatchObject({ code: 'bad_answer', message: expect.stringMatching(/\S/) });
		expect(classify(error).exit).toBe(7);
		expect(service.asked()).toHaveLength(1);
	});

	it('causes an error that names the request and the invalid key', async () => {
		service.answer(json(page({ count: 1, results: [{ id: 1 }] })));
		const error = await failure(client().api.lists.page({}));
		expect(error.message).toBe('The answer has no valid results.0.name: expected a text (GET /sub/lists/).');
		expect(error.http).toEqual({ status: 200, method: 'GET', path: '/sub/lists/' });
	});
});

describe('a redirect', () => {
	it.each([
		['to the same host', 301, '/elsewhere/'],
		['to another host', 302, 'https://elsewhere.example/sub/lists/'],
		['to another scheme', 307, 'http://127.0.0.1/'],
		['that keeps the method', 308, '//elsewhere.example/'],
		['with status 303', 303, '/login?next=/sub/lists/'],
	])('%s is not followed: bad_answer, exit 7', async (_, status, location) => {
		service.answer({ kind: 'empty', status, headers: { location } });
		const error = await failure(
			client({ remote: { retries: 3 } }).api.lists.create({ name: 'a', email_reason: 'b' }),
		);
		expect(error.code).toBe('bad_answer');
		expect(error.message).toContain(`${status} with a redirect to ${location}`);
		expect(classify(error).exit).toBe(7);
		expect(service.asked()).toHaveLength(1);
	});

	it('to another origin gets no token', async () => {
		const foreign = await startHostileService();
		service.answer({ kind: 'empty', status: 302, headers: { location: `${foreign.url}/sub/lists/` } });
		await failure(client().api.lists.page({}));
		await failure(client().api.lists.delete(1));
		expect(foreign.seen).toEqual([]);
		expect(foreign.connections()).toBe(0);
		await foreign.close();
	});

	it('is reported with its target, but without the token and control characters', async () => {
		const location = `https://elsewhere.example/?token=${token}&x=\u0085`;
		service.answer({ kind: 'empty', status: 302, headers: { location } });
		const { message } = await failure(client().api.lists.page({}));
		expect(message).toContain('https://elsewhere.example/?token=***&x=\\x85');
		expect(message).not.toContain(token);
	});
});

describe('a next link to another origin', () => {
	it('is followed at the base URL, and the other origin gets no request', async () => {
		const foreign = await startHostileService();
		service.answer(
			json(page({ count: 2, next: `${foreign.url}/stolen/?page=2&shard=7`, results: [list] })),
			json(page({ count: 2, results: [{ id: 2, name: 'Other' }] })),
		);
		const { api } = client();
		const rows = await take(
			iterate((request) => api.lists.page(request)),
			10,
		);
		expect(rows).toEqual([list, { id: 2, name: 'Other' }]);
		expect(service.asked().map(({ url }) => url)).toEqual(['/sub/lists/', '/sub/lists/?page=2&shard=7']);
		expect(foreign.connections()).toBe(0);
		await foreign.close();
	});
});

describe('a call without a complete answer', () => {
	it('ends with exit 6 if the port is closed, and counts as not sent', async () => {
		const url = service.url;
		await service.close();
		const error = await failure(client({ baseUrl: url }).api.lists.create({ name: 'a', email_reason: 'b' }));
		expect(error).toMatchObject({ code: 'network', unanswered: false });
		expect(error.message).toBe(`cannot connect to ${url}: connection refused (ECONNREFUSED)`);
		expect(classify(error).exit).toBe(6);
		service = await startHostileService();
	});

	it('ends with exit 6 if the host does not exist, and counts as not sent', async () => {
		const error = await failure(client({ baseUrl: 'http://nobody.invalid' }).api.lists.page({}));
		expect(error).toMatchObject({ code: 'network', unanswered: false });
		expect(classify(error).exit).toBe(6);
	});

	it.each<[string, Act]>([
		['the connection was lost after the request', { kind: 'cut' }],
		['the connection was lost within the answer', { kind: 'truncated', text: '{"id": 1, "name": "Ne' }],
	])('ends with exit 6 and an unknown outcome if %s', async (_, act) => {
		service.answer(act);
		const error = await failure(client().api.lists.create({ name: 'a', email_reason: 'b' }));
		expect(error).toMatchObject({ code: 'network', unanswered: true, http: null });
		expect(classify(error).exit).toBe(6);
		expect(service.asked()).toHaveLength(1);
	});

	it.each<[string, Act]>([
		['a server that never answers', { kind: 'silent' }],
		['a server that answers byte by byte', { kind: 'drip' }],
	])('ends with exit 6 after its timeout: %s', async (_, act) => {
		service.answer(act);
		const error = await failure(client({ remote: { timeoutMs: 250 } }).api.lists.page({}));
		expect(error).toMatchObject({ code: 'network', unanswered: true });
		expect(error.message).toBe(`${service.url}: no complete answer within 250 ms`);
		expect(classify(error).exit).toBe(6);
	});

	it('waits one second longer for each 256 KiB that it uploads', async () => {
		service.introduce(json({ service: 'mailctl', version: '1.2.3', extensions: ['attachments'] }));
		service.answer({ kind: 'silent' });
		const { api } = client({ remote: { timeoutMs: 250, retries: 0 } });
		const attachments = await need(api, 'attachments');
		const error = await failure(attachments.put('a'.repeat(64), new Uint8Array(128 * 1024)));
		expect(error.message).toBe(`${service.url}: no complete answer within 750 ms`);
	});

	it('is not sent if the token cannot be a header value, and the error hides the token', async () => {
		const error = await failure(client({ token: 'two\r\nlines' }).api.lists.page({}));
		expect(error).toMatchObject({ code: 'network', unanswered: false });
		expect(error.message).not.toContain('two');
		expect(service.seen).toEqual([]);
	});

	it('ends at once with the reason when it is aborted', async () => {
		service.answer({ kind: 'drip' });
		const stop = new AbortController();
		const { api } = client();
		const call = api.lists.page({}, { signal: stop.signal });
		const reason = new Error('enough');
		stop.abort(reason);
		await expect(call).rejects.toBe(reason);
		await expect(api.lists.page({}, { signal: stop.signal })).rejects.toBe(reason);
	});
});
