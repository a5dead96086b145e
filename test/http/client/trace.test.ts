import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, createClient } from '../../../src/http/client/client.js';
import { clientOptions } from '../../support/client.js';
import { emptyPage, type HostileService, startHostileService } from '../../support/hostile-service.js';

let service: HostileService;
let client: Client;
let lines: string[];

beforeEach(async () => {
	service = await startHostileService();
	lines = [];
	client = createClient(clientOptions({ baseUrl: service.url, trace: (line) => lines.push(line) }));
});
afterEach(async () => {
	await client.close();
	await service.close();
});

const untimed = () => lines.map((line) => line.replace(/in \d+ ms/, 'in N ms'));

describe('the trace', () => {
	it('has a line for each request and each answer', async () => {
		await client.api.lists.page({ page: 1 });
		expect(untimed()).toEqual(['> GET /sub/lists/?page=1', '< 200 in N ms, 52 bytes']);
	});

	it('contains the error that a service returns, and reports a missing answer', async () => {
		service.answer({ kind: 'text', status: 500, text: `Oops\n${'x'.repeat(2_000)}` }, { kind: 'cut' });
		await client.api.lists.get(1).catch(() => null);
		await client.api.lists.get(1).catch(() => null);
		const [, head, body, , lost] = untimed();
		expect(head).toBe('< 500 in N ms, 2005 bytes');
		expect(body).toMatch(/^< Oops x+…$/);
		expect(body?.length).toBeLessThanOrEqual(502);
		expect(lost).toMatch(/^< nothing: .* closed the connection/);
	});

	it('never contains the token, a password or a webhook’s secret', async () => {
		const input = { url: 'https://a.example/', type: 'OPENED' as const, login: 'ann', password: 'hunter2' };
		service.answer({
			kind: 'json',
			status: 400,
			body: { ...input, password: ['hunter2'], secret: 'whsec_abc', token: 'other', echo: 'a-secret-token' },
		});
		await client.api.webhooks.create(input).catch(() => null);
		expect(lines.join('\n')).not.toMatch(/hunter2|whsec_abc|other|a-secret-token/);
		expect(lines.join('\n')).toContain('"login":"ann"');
	});
});

describe('a raw request', () => {
	it('returns any answer, including redirects and errors, without retries', async () => {
		for (const status of [200, 204, 302, 404, 429, 503]) {
			service.seen.length = 0;
			service.answer({ kind: 'empty', status, headers: { 'retry-after': '0', location: '/x/' } });
			const answer = await client.exchange({ method: 'GET', path: '/sub/lists/?a=b' });
			expect(answer).toMatchObject({ status, headers: { location: '/x/' } });
			expect(service.seen).toHaveLength(1);
		}
		expect(service.seen[0]).toMatchObject({ method: 'GET', url: '/sub/lists/?a=b' });
	});

	it('sends the given method, headers and body', async () => {
		service.answer({ kind: 'json', body: emptyPage });
		const body = Buffer.from([0, 1, 255]);
		await client.exchange({
			method: 'OPTIONS',
			path: '/x',
			headers: { accept: 'text/plain', 'Content-Type': 'application/x-odd' },
			body,
		});
		expect(service.seen[0]).toMatchObject({
			method: 'OPTIONS',
			url: '/x',
			headers: { accept: 'text/plain', 'content-type': 'application/x-odd', 'content-length': '3' },
		});
	});

	it.each([
		[undefined, 'a-secret-token'],
		[null, undefined],
		['another', 'another'],
	])('with the token option %j sends the token %j', async (token, expected) => {
		await client.exchange({ method: 'GET', path: '/', ...(token !== undefined && { token }) });
		expect(service.seen[0]?.headers['x-secure-token']).toBe(expected);
		expect(lines.join('\n')).not.toContain('another');
	});

	it('returns the decompressed body, and joins repeated headers', async () => {
		service.answer({ kind: 'bomb', bytes: 1_000 });
		const { body, durationMs } = await client.exchange({ method: 'GET', path: '/x' });
		expect(body.length).toBe(1_000);
		expect(durationMs).toBeGreaterThan(0);
		service.answer({ kind: 'raw', text: 'HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\ncontent-length: 0\r\n\r\n' });
		expect((await client.exchange({ method: 'GET', path: '/x' })).headers['x-a']).toBe('1, 2');
	});

	it('throws an ApiError for an answer that is missing or too large', async () => {
		service.answer({ kind: 'cut' });
		await expect(client.exchange({ method: 'GET', path: '/x' })).rejects.toMatchObject({
			name: 'ApiError',
			code: 'network',
			unanswered: true,
		});
		service.answer({ kind: 'bomb', bytes: 65 * 2 ** 20 });
		await expect(client.exchange({ method: 'GET', path: '/x' })).rejects.toMatchObject({
			code: 'bad_answer',
		});
	});
});
