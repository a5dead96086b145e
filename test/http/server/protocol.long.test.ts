import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { peerName } from '../../../src/http/server/connection.js';
import { createMetrics } from '../../../src/http/server/telemetry.js';
import type { HttpResponse } from '../../../src/http/wire.js';
import { eventually } from '../../support/eventually.js';
import { ask, type Deployment, type DeploymentOptions, deploy, tokens } from './serving.js';
import { dial, type Wire } from './wire.js';

let deployment: Deployment;
const wires: Wire[] = [];

async function start(options: DeploymentOptions = {}): Promise<void> {
	deployment = await deploy(options);
}
async function open(): Promise<Wire> {
	const wire = await dial(deployment.server.url);
	wires.push(wire);
	return wire;
}
afterEach(async () => {
	for (const wire of wires.splice(0)) wire.destroy();
	await deployment.close();
});

const host = 'Host: x\r\n';
const token = `X-Secure-Token: ${tokens.admin}\r\n`;
const json = 'Content-Type: application/json\r\n';
const list = '{"name":"News","email_reason":"You asked"}';
const detail = (text: string) => JSON.stringify({ detail: text });

function post(body: string, more = ''): string {
	return `POST /sub/lists/ HTTP/1.1\r\n${host}${token}${json}${more}Content-Length: ${body.length}\r\n\r\n${body}`;
}
const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\n${host}${token}${more}\r\n`;

describe('a request near a limit', () => {
	it('gets 414 for a URL over 8 KiB, and the connection continues', async () => {
		await start();
		const wire = await open();
		wire.write(get(`/sub/lists/?x=${'a'.repeat(8192)}`));
		expect(await wire.read()).toMatchObject({
			status: 414,
			body: detail('The URL of the request is too long.'),
		});
		wire.write(get('/sub/lists/'));
		expect(await wire.read()).toMatchObject({ status: 200 });
	});

	it('gets 431 in JSON for headers over 16 KiB, and the connection ends', async () => {
		await start();
		const wire = await open();
		wire.write(get('/', `X-Long: ${'a'.repeat(20_000)}\r\n`));
		const answer = await wire.read();
		expect(answer).toMatchObject({ status: 431, body: detail('The headers of the request are too large.') });
		expect(answer?.headers).toMatchObject({ 'content-type': 'application/json', connection: 'close' });
		await wire.closed();
		expect(deployment.lines).toEqual([
			expect.objectContaining({ method: null, path: null, status: 431, error: 'too_large', ip: '127.0.0.1' }),
		]);
	});

	it('is accepted with any number of headers up to 16 KiB', async () => {
		await start();
		const wire = await open();
		const many = Array.from({ length: 1_900 }, (_, at) => `x${at}:\r\n`).join('');
		wire.write(`GET /sub/lists/ HTTP/1.1\r\n${host}${many}${token}\r\n`);
		expect(await wire.read()).toMatchObject({ status: 200 });
	});

	it('gets 413 for an announced body over 10 MiB, or 4 MiB for a batch', async () => {
		await start();
		for (const [path, size, limit] of [
			['POST /message/send/', 10 * 1024 * 1024 + 1, 10],
			['POST /sub/lists/', 10 * 1024 * 1024 + 1, 10],
			['PUT /ext/imports/7f1c6f5e-4a43-4d0f-9c1d-0a4f5f9c2f11/batches/0/', 4 * 1024 * 1024 + 1, 4],
		] as const) {
			const wire = await open();
			wire.write(`${path} HTTP/1.1\r\n${host}${token}${json}Content-Length: ${size}\r\n\r\n`);
			const answer = await wire.read();
			expect(answer).toMatchObject({
				status: 413,
				body: detail(`The request body is larger than ${limit} MiB.`),
			});
			expect(answer?.headers['connection']).toBe('close');
			expect(answer?.headers['x-error-code']).toBe('too_large');
		}
	});

	it('gets 413 if its chunked body exceeds the limit, and the client can read the answer', async () => {
		await start();
		const wire = await open();
		wire.write(`POST /sub/lists/ HTTP/1.1\r\n${host}${token}${json}Transfer-Encoding: chunked\r\n\r\n`);
		const chunk = Buffer.concat([
			Buffer.from('100000\r\n'),
			Buffer.alloc(0x100000, 0x20),
			Buffer.from('\r\n'),
		]);
		for (let sent = 0; sent < 12; sent++) wire.write(chunk);
		expect(await wire.read()).toMatchObject({ status: 413 });
		await wire.closed();
	});

	it('can have a body of exactly 10 MiB', async () => {
		await start();
		const mail = JSON.stringify({
			from: 'news@example.com',
			to: ['a@example.org'],
			subject: 'x',
			text_body: 'x',
		});
		const padding = ' '.repeat(10 * 1024 * 1024 - mail.length);
		expect(await ask(deployment, 'POST', '/message/send/', { raw: mail + padding })).toMatchObject({
			status: 200,
		});
	});

	it('gets 503 with Retry-After if all bodies together are too large', async () => {
		await start({ server: { limits: { maxBytesInFlight: 100_000 } } });
		const [first, second] = [await open(), await open()];
		const head = `POST /sub/lists/ HTTP/1.1\r\n${host}${token}${json}Content-Length: 90000\r\n\r\n`;
		first.write(head + ' '.repeat(60_000));
		await eventually(() => expect(first.socket.bytesWritten).toBeGreaterThan(60_000));
		await ask(deployment, 'GET', '/healthz');
		second.write(head + ' '.repeat(60_000));
		const answer = await second.read();
		expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
		first.write(' '.repeat(30_000 - list.length) + list);
		expect(await first.read()).toMatchObject({ status: 201 });
		const third = await open();
		third.write(head + ' '.repeat(90_000 - list.length) + list);
		expect(await third.read()).toMatchObject({ status: 201 });
	});

	it('keeps its connection after a 503 if its body is short', async () => {
		await start({ server: { limits: { maxBytesInFlight: 1000 } } });
		const wire = await open();
		const head = `POST /sub/lists/ HTTP/1.1\r\n${host}${token}${json}Content-Length: 60000\r\n\r\n`;
		wire.write(head + ' '.repeat(30_000));
		expect(await wire.read()).toMatchObject({ status: 503, headers: { connection: 'keep-alive' } });
		wire.write(' '.repeat(30_000) + get('/sub/lists/'));
		expect(await wire.read()).toMatchObject({ status: 200 });
	});

	it('gets 503 if too many requests run at once', async () => {
		const release: (() => void)[] = [];
		await start({
			server: { limits: { maxRequests: 2 } },
			handler: { ready: () => new Promise((resolve) => release.push(() => resolve(null))) },
		});
		const waiting = [ask(deployment, 'GET', '/readyz'), ask(deployment, 'GET', '/readyz')];
		await eventually(() => expect(release).toHaveLength(2));
		const answer = await ask(deployment, 'GET', '/healthz');
		expect(answer.status).toBe(503);
		expect(answer.headers.get('retry-after')).toBe('1');
		for (const one of release) one();
		for (const one of await Promise.all(waiting)) expect(one.status).toBe(200);
	});
});

describe('the limits per client address', () => {
	it('delay a request until the server answers an earlier one', async () => {
		const release: (() => void)[] = [];
		await start({
			server: { limits: { maxRequestsPerAddress: 2 } },
			handler: { ready: () => new Promise((resolve) => release.push(() => resolve(null))) },
		});
		const waiting = [ask(deployment, 'GET', '/readyz'), ask(deployment, 'GET', '/readyz')];
		await eventually(() => expect(release).toHaveLength(2));
		let isAnswered = false;
		const third = ask(deployment, 'GET', '/healthz').finally(() => {
			isAnswered = true;
		});
		await new Promise((resolve) => setTimeout(resolve, 100));
		expect(isAnswered).toBe(false);
		release[0]?.();
		expect(await third).toMatchObject({ status: 200 });
		release[1]?.();
		for (const one of await Promise.all(waiting)) expect(one.status).toBe(200);
	});

	it('include the size of request bodies', async () => {
		await start({ server: { limits: { maxBytesPerAddress: 1000 } } });
		const answer = await ask(deployment, 'POST', '/sub/lists/', { raw: ' '.repeat(1001) });
		expect(answer.status).toBe(503);
		expect(await ask(deployment, 'POST', '/sub/lists/', { raw: list })).toMatchObject({ status: 201 });
	});

	it('delay an upload if all uploads together would exceed the byte limit', async () => {
		await start({ server: { limits: { maxBytesPerAddress: 1500 } } });
		const wires = [await open(), await open(), await open()];
		const halves = wires.map((wire, index) => {
			const file = String(index).repeat(1000);
			const sha256 = createHash('sha256').update(file).digest('hex');
			wire.write(
				`PUT /ext/attachments/${sha256}/ HTTP/1.1\r\n${host}${token}Content-Length: ${file.length}\r\n\r\n${file.slice(500)}`,
			);
			return { wire, rest: file.slice(500) };
		});
		for (const { wire, rest } of halves) wire.write(rest);
		for (const { wire } of halves) expect(await wire.read()).toMatchObject({ status: 200 });
	});

	it('do not count an upload whose client has disconnected', async () => {
		await start();
		const sha256 = createHash('sha256').update('whole').digest('hex');
		const put = (length: number) =>
			`PUT /ext/attachments/${sha256}/ HTTP/1.1\r\n${host}${token}Content-Length: ${length}\r\n\r\nwhole`;
		const [left, waiting, last] = [await open(), await open(), await open()];
		for (const wire of [left, waiting]) wire.write(put(1000));
		last.write(put(5));
		waiting.destroy();
		left.destroy();
		expect(await last.read()).toMatchObject({ status: 200 });
	});

	it('close the connection that has been idle longest, but never one with a running request', async () => {
		const release: (() => void)[] = [];
		await start({
			server: { limits: { maxConnectionsPerAddress: 3 } },
			handler: { ready: () => new Promise((resolve) => release.push(() => resolve(null))) },
		});
		const busy = await open();
		busy.write(get('/readyz'));
		await eventually(() => expect(release).toHaveLength(1));
		const [first, second] = [await open(), await open()];
		first.write(get('/healthz'));
		expect(await first.read()).toMatchObject({ status: 200 });
		const last = await open();
		await second.closed();
		last.write(get('/healthz'));
		expect(await last.read()).toMatchObject({ status: 200 });
		release[0]?.();
		expect(await busy.read()).toMatchObject({ status: 200 });
	});

	it('apply to the address that a trusted proxy sends, not to the proxy', async () => {
		const release: (() => void)[] = [];
		await start({
			server: { trustProxy: true, limits: { maxConnectionsPerAddress: 1, maxRequestsPerAddress: 1 } },
			handler: { ready: () => new Promise((resolve) => release.push(() => resolve(null))) },
		});
		const from = (address: string) => ({ headers: { 'X-Forwarded-For': address } });
		const waiting = [1, 2, 3, 4, 5, 6].map((n) => ask(deployment, 'GET', '/readyz', from(`192.0.2.${n}`)));
		await eventually(() => expect(release).toHaveLength(6));
		for (const one of release) one();
		for (const one of await Promise.all(waiting)) expect(one.status).toBe(200);
	});

	it.each([
		['192.0.2.7', '192.0.2.7'],
		['::ffff:192.0.2.7', '192.0.2.7'],
		['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
		['2001:db8:1:2::9', '2001:db8:1:2'],
		['::1', '0:0:0:0'],
	])('identify the client %s as %s (IPv6 only by its /64 prefix)', (address, name) => {
		expect(peerName(address)).toBe(name);
	});
});

describe('a client that is too slow', () => {
	const limits = { headersTimeoutMs: 300, requestTimeoutMs: 600, checkIntervalMs: 50 };

	it('gets 408 in JSON for slow headers', async () => {
		await start({ server: { limits } });
		const wire = await open();
		wire.write('GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ');
		expect(await wire.read()).toMatchObject({
			status: 408,
			body: detail('The request took too long to arrive.'),
		});
		await wire.closed();
	});

	it('gets 408 for an endless body, whose memory is freed', async () => {
		await start({ server: { limits: { ...limits, maxBytesInFlight: 1000 } } });
		const wire = await open();
		wire.write(
			`POST /sub/lists/ HTTP/1.1\r\n${host}${token}${json}Content-Length: 900\r\n\r\n${' '.repeat(800)}`,
		);
		expect(await wire.read()).toMatchObject({ status: 408 });
		await wire.closed();
		await eventually(() => expect(deployment.lines).toHaveLength(1));
		expect(deployment.lines).toMatchObject([
			{ method: 'POST', path: '/sub/lists/', status: 408, error: 'timeout' },
		]);
		expect(await ask(deployment, 'POST', '/sub/lists/', { raw: ' '.repeat(900) })).toMatchObject({
			status: 400,
		});
	});

	it('gets 408 for a slow form of a public page', async () => {
		await start({
			server: {
				limits: { formTimeoutMs: 200 },
				publicPages: async ({ body }) => ({ status: 200, headers: {}, body: String(await body?.()) }),
			},
		});
		const wire = await open();
		wire.write(`POST /u/x HTTP/1.1\r\n${host}Content-Length: 100\r\n\r\na`);
		expect(await wire.read()).toMatchObject({ status: 408 });
		await wire.closed();
	});

	it('is disconnected if it sends nothing', async () => {
		await start({ server: { limits } });
		const wire = await open();
		await wire.closed();
	});

	it('is disconnected when idle', async () => {
		await start({ server: { limits: { keepAliveTimeoutMs: 200 } } });
		const wire = await open();
		wire.write(get('/'));
		expect(await wire.read()).toMatchObject({ status: 200 });
		await wire.closed();
	});

	it('is dropped if it does not read its answer', async () => {
		const large: HttpResponse = { status: 200, headers: {}, body: Buffer.alloc(32 * 1024 * 1024) };
		await start({ server: { limits: { writeTimeoutMs: 200 }, publicPages: async () => large } });
		const wire = await open();
		wire.socket.pause();
		wire.write(get('/o/x.gif'));
		await eventually(() => expect(deployment.lines).toHaveLength(1));
	});
});

describe('a malformed request', () => {
	it.each([
		['garbage', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
		[
			'both Content-Length and Transfer-Encoding',
			`POST / HTTP/1.1\r\n${host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
		],
		['two lengths', `POST / HTTP/1.1\r\n${host}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde`],
		['a length that is not a number', `POST / HTTP/1.1\r\n${host}Content-Length: 4x\r\n\r\nabcd`],
		['an unknown transfer encoding', `POST / HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\nabcd`],
		['a space before the colon', `POST / HTTP/1.1\r\n${host}Content-Length : 4\r\n\r\nabcd`],
		['a folded header', `GET / HTTP/1.1\r\n${host}X: a\r\n b\r\n\r\n`],
		['a NUL in a header', `GET / HTTP/1.1\r\n${host}X: a\0b\r\n\r\n`],
		['an invalid method', `F(TCH / HTTP/1.1\r\n${host}\r\n`],
		['an unknown HTTP version', `GET / HTTP/3.7\r\n${host}\r\n`],
		['no Host', 'GET / HTTP/1.1\r\n\r\n'],
		['a space in the target', `GET / x HTTP/1.1\r\n${host}\r\n`],
	])('with %s gets 400 in JSON', async (_, text) => {
		await start();
		const wire = await open();
		wire.write(text);
		const answer = await wire.read();
		expect(answer?.status).toBe(400);
		expect(answer?.headers['content-type']).toBe('application/json');
		expect(JSON.parse(answer?.body ?? '')).toEqual({ detail: expect.any(String) });
	});

	it('with a broken chunk gets one answer, and the connection ends', async () => {
		await start();
		const wire = await open();
		wire.write(`POST /sub/lists/ HTTP/1.1\r\n${host}${token}${json}Transfer-Encoding: chunked\r\n\r\nzz\r\n`);
		expect(await wire.read()).toMatchObject({ status: 400 });
		expect(await wire.read()).toBe(null);
	});

	const unknown = `FOO /sub/lists/ HTTP/1.1\r\n${host}${token}${json}Content-Length: 13\r\n\r\n{"name": "x"}`;
	const refusal = {
		status: 405,
		body: detail('Method "FOO" not allowed.'),
		headers: { allow: 'GET, POST, HEAD, OPTIONS', connection: 'close' },
	};

	it('with an unknown method gets a 405, and the connection ends', async () => {
		await start();
		const wire = await open();
		wire.socket.end(unknown);
		expect(await wire.read()).toMatchObject(refusal);
		expect(await wire.read()).toBe(null);
	});

	it.each(
		'GETX PUTS PATCHED PRO M UNSUBSCRIBER HTTP b-1 __proto__ constructor'.split(' '),
	)('with the unknown method %s gets a 405, also after a request with a body', async (method) => {
		await start();
		const wire = await open();
		const head = `${method} /sub/lists/ HTTP/1.1\r\n${host}${token}\r\n`;
		wire.write(`${post(list)}${head}`);
		expect(await wire.read()).toMatchObject({ status: 201 });
		expect(await wire.read()).toMatchObject({
			status: 405,
			body: detail(`Method "${method}" not allowed.`),
		});
	});

	it('with an unknown method and a large body is answered in pipeline order', async () => {
		await start();
		const wire = await open();
		const body = 'x'.repeat(50_000);
		wire.write(
			`${get('/sub/fields/')}FOO /sub/lists/ HTTP/1.1\r\n${host}${token}Content-Length: ${body.length}\r\n\r\n${body}`,
		);
		expect(await wire.read()).toMatchObject({ status: 200 });
		expect(await wire.read()).toMatchObject(refusal);
		expect(await wire.read()).toBe(null);
	});

	it.each([
		['FOO', token, 405, 'Method "FOO" not allowed.'],
		['get', token, 405, 'Method "get" not allowed.'],
		['FOO', '', 401, 'Authentication credentials were not provided.'],
	])('with an unknown method and a body gets a 405, or a 401 without a token (%s: $2)', async (method, with_, status, says) => {
		await start();
		const wire = await open();
		wire.write(
			`${get('/sub/fields/')}${method} /sub/lists/?x=1 HTTP/1.1\r\n${host}${with_}Content-Length: 2\r\n\r\n{}`,
		);
		expect(await wire.read()).toMatchObject({ status: 200 });
		const answer = await wire.read();
		expect(answer).toMatchObject({ status, body: detail(says) });
		expect(answer?.headers['allow']).toBe('GET, POST, HEAD, OPTIONS');
		await wire.closed();
		expect(deployment.lines.at(-1)).toMatchObject({ method, path: '/sub/lists/', status });
	});

	it('is answered after earlier requests', async () => {
		await start();
		const wire = await open();
		wire.write(`${get('/sub/lists/')}${get('/sub/fields/')}NONSENSE\r\n\r\n`);
		expect(await wire.read()).toMatchObject({ status: 200 });
		expect(await wire.read()).toMatchObject({ status: 200 });
		expect(await wire.read()).toMatchObject({ status: 400 });
		expect(await wire.read()).toBe(null);
	});
});

describe('a connection', () => {
	it('answers pipelined requests in order', async () => {
		await start();
		const wire = await open();
		wire.write(post(list) + get('/sub/lists/1/') + post('{') + get('/sub/lists/'));
		expect(await wire.read()).toMatchObject({ status: 201 });
		expect(await wire.read()).toMatchObject({ status: 200 });
		expect(await wire.read()).toMatchObject({ status: 400 });
		expect(JSON.parse((await wire.read())?.body ?? '')).toMatchObject({ count: 1 });
	});

	it('answers any number of pipelined requests', async () => {
		await start();
		const wire = await open();
		const paths = Array.from(
			{ length: 5_000 },
			(_, n) => `/nope/${'n'.repeat(n % 40)}/${n % 7 === 0 ? '' : 'x'}`,
		);
		wire.write(paths.map((path) => `GET ${path} HTTP/1.1\r\n${host}\r\n`).join('') + post(list));
		for (const _ of paths) expect((await wire.read())?.status).toBe(404);
		expect(await wire.read()).toMatchObject({ status: 201 });
	});

	it('sends 100 Continue only to authorized clients', async () => {
		await start();
		const head = (secret: string) =>
			`POST /sub/lists/ HTTP/1.1\r\n${host}X-Secure-Token: ${secret}\r\n${json}Expect: 100-continue\r\nContent-Length: ${list.length}\r\n\r\n`;
		const welcome = await open();
		welcome.write(head(tokens.admin));
		await eventually(() => expect(welcome.received()).toBe('HTTP/1.1 100 Continue\r\n\r\n'));
		welcome.write(list);
		expect(await welcome.read()).toMatchObject({ status: 201 });
		const stranger = await open();
		stranger.write(head('nobody'));
		expect(await stranger.read()).toMatchObject({ status: 401, headers: { connection: 'close' } });
		expect(stranger.received()).not.toContain('100 Continue');
		const other = await open();
		other.write(`GET / HTTP/1.1\r\n${host}Expect: miracles\r\n\r\n`);
		expect(await other.read()).toMatchObject({ status: 417 });
	});

	it('stays open after a short body that the server does not read', async () => {
		await start();
		const wire = await open();
		wire.write(`POST /nope/ HTTP/1.1\r\n${host}Content-Length: 5\r\n\r\nhello${get('/sub/lists/')}`);
		expect(await wire.read()).toMatchObject({ status: 404, headers: { connection: 'keep-alive' } });
		expect(await wire.read()).toMatchObject({ status: 200 });
	});

	it('answers an unauthorized request before its body arrives', async () => {
		await start();
		const wire = await open();
		wire.write(`POST /sub/lists/ HTTP/1.1\r\n${host}${json}Content-Length: 10000000\r\n\r\n`);
		expect(await wire.read()).toMatchObject({ status: 401, headers: { connection: 'close' } });
	});

	it('accepts absolute URLs and HTTP/1.0', async () => {
		await start();
		const wire = await open();
		wire.write(get('http://elsewhere.example/sub/lists/?page=1'));
		expect(await wire.read()).toMatchObject({ status: 200 });
		await start({
			server: { publicPages: async ({ path }) => ({ status: 200, headers: {}, body: path }) },
		});
		const reader = await open();
		reader.write(get('http://elsewhere.example/u/token?a=1'));
		expect(await reader.read()).toMatchObject({ status: 200, body: '/u/token' });
		const old = await open();
		old.write(`GET /sub/lists/ HTTP/1.0\r\n${token}\r\n`);
		expect(await old.read()).toMatchObject({ status: 200 });
		await old.closed();
	});

	it('rejects TRACE like any unknown method', async () => {
		await start();
		const wire = await open();
		wire.write(`TRACE /sub/lists/ HTTP/1.1\r\n${host}${token}\r\n`);
		expect(await wire.read()).toMatchObject({
			status: 405,
			headers: { allow: 'GET, POST, HEAD, OPTIONS' },
			body: detail('Method "TRACE" not allowed.'),
		});
	});

	it('aborts the handler’s signal when the client disconnects', async () => {
		let signal: AbortSignal | undefined;
		await start();
		deployment.engine.webhooks.test = (_id, call) => {
			signal = call?.signal;
			return new Promise(() => {});
		};
		const wire = await open();
		wire.write(get('/webhooks/1/run_test/'));
		await eventually(() => expect(signal).not.toBe(undefined));
		expect(signal?.aborted).toBe(false);
		wire.destroy();
		await eventually(() => expect(signal?.aborted).toBe(true));
	});
});

describe('public pages', () => {
	it('are tried before the API, receive the client’s IP address, and keep tokens out of the log', async () => {
		const seen: unknown[] = [];
		await start({
			server: {
				publicPages: async ({ path, method, body, ip }) => {
					seen.push({
						path,
						method,
						body: String((await body?.()) ?? ''),
						ip,
					});
					return path === '/u/none'
						? null
						: { status: 200, headers: { 'Content-Type': 'text/plain' }, body: 'page' };
				},
			},
		});
		expect(await ask(deployment, 'GET', '/u/secretsecret?a=1', { token: null })).toMatchObject({
			status: 200,
			text: 'page',
		});
		await ask(deployment, 'POST', '/u/secretsecret', { token: null, raw: 'List-Unsubscribe=One-Click' });
		expect(await ask(deployment, 'GET', '/u/none')).toMatchObject({
			status: 404,
			text: detail('Not found.'),
		});
		expect(seen.slice(0, 2)).toEqual([
			{ path: '/u/secretsecret', method: 'GET', body: '', ip: '127.0.0.1' },
			{
				path: '/u/secretsecret',
				method: 'POST',
				body: 'List-Unsubscribe=One-Click',
				ip: '127.0.0.1',
			},
		]);
		expect(deployment.lines.map(({ path }) => path)).toEqual(['/u/…', '/u/…', '/u/…']);
	});

	it('answer pipelined requests in order, and the server logs these like other requests', async () => {
		const asked: string[] = [];
		const publicPages = Object.assign(
			async ({ path }: { path: string }) => ({ status: 200, headers: {}, body: `later ${path}` }),
			{
				synchronously: ({ path }: { path: string }) => {
					asked.push(path);
					return path.startsWith('/o/') ? { status: 200, headers: {}, body: `at once ${path}` } : null;
				},
			},
		);
		await start({ server: { publicPages } });
		const wire = await open();
		wire.write(get('/o/1') + get('/o/2') + get('/sub/lists/') + get('/c/3') + get('/o/4'));
		for (const body of ['at once /o/1', 'later /o/2', null, 'later /c/3', 'later /o/4']) {
			const answer = await wire.read();
			expect(answer).toMatchObject(body === null ? { status: 200 } : { status: 200, body });
		}
		wire.write(get('/c/5'));
		expect(await wire.read()).toMatchObject({ body: 'later /c/5' });
		wire.write(get('/o/6'));
		expect(await wire.read()).toMatchObject({ body: 'at once /o/6' });
		expect(asked).toEqual(['/o/1', '/c/5', '/o/6']);
		await eventually(() => expect(deployment.lines).toHaveLength(7));
		expect(deployment.lines.map(({ path }) => path)).toEqual([
			'/o/…',
			'/o/…',
			'/sub/lists/',
			'/c/…',
			'/o/…',
			'/c/…',
			'/o/…',
		]);
	});

	it('have the same rules for the URL and the Host header as the API', async () => {
		const synchronously = () => ({ status: 200, headers: {}, body: 'page' });
		await start({ server: { publicPages: Object.assign(async () => null, { synchronously }) } });
		const wire = await open();
		wire.write(get(`/o/${'a'.repeat(9_000)}`));
		expect(await wire.read()).toMatchObject({ status: 414 });
		const bare = await open();
		bare.write('GET /o/a HTTP/1.1\r\n\r\n');
		expect(await bare.read()).toMatchObject({ status: 400 });
	});

	it('close their connection if the server is stopping', async () => {
		let closing: Promise<void> | null = null;
		const synchronously = () => {
			queueMicrotask(() => {
				closing = deployment.server.close({ graceMs: 20_000 });
			});
			return { status: 200, headers: {}, body: 'page' };
		};
		await start({ server: { publicPages: Object.assign(async () => null, { synchronously }) } });
		const wire = await open();
		wire.write(get('/o/a'));
		expect(await wire.read()).toMatchObject({ status: 200, headers: { connection: 'close' }, body: 'page' });
		await closing;
	});

	it('are counted in the metrics of the API', async () => {
		const metrics = createMetrics();
		const publicPages = async () => ({ status: 200, headers: {}, body: 'page' });
		await start({ server: { publicPages, metrics }, handler: { metrics } });
		await ask(deployment, 'GET', '/o/secret.gif');
		const wire = await open();
		wire.write('NONSENSE\r\n\r\n');
		await wire.read();
		const { text } = await ask(deployment, 'GET', '/metrics');
		expect(text).toContain('mailctl_http_requests_total{operation="/o/",status="200"} 1\n');
		expect(text).toContain('mailctl_http_requests_total{operation="refused",status="400"} 1\n');
		expect(text).toContain('mailctl_http_requests_in_flight 1\n');
		expect(text).not.toContain('secret');
	});

	it('that fail give a 500 without details', async () => {
		await start({ server: { publicPages: () => Promise.reject(new Error('SELECT token FROM secrets')) } });
		const answer = await ask(deployment, 'GET', '/o/abc.gif', { token: null });
		expect(answer).toMatchObject({ status: 500, text: detail('A server error occurred.') });
		expect(deployment.lines[0]).toMatchObject({ level: 'error', path: '/o/…' });
	});

	it('that return an invalid header end only the connection of that request', async () => {
		const headers = { Location: 'https://example.com/\r\nX-Injected: 1' };
		await start({ server: { publicPages: async () => ({ status: 302, headers, body: null }) } });
		const wire = await open();
		wire.write(get('/c/abc'));
		expect(await wire.read()).toBe(null);
		expect(deployment.lines[0]).toMatchObject({
			level: 'error',
			error: expect.stringContaining('Invalid character'),
		});
		expect(await ask(deployment, 'GET', '/healthz')).toMatchObject({ status: 200 });
	});

	it('use X-Forwarded-For only if the server trusts its proxy', async () => {
		const ips: (string | null)[] = [];
		const publicPages = async ({ ip }: { ip: string | null }) => {
			ips.push(ip);
			return { status: 200, headers: {}, body: null };
		};
		const forwarded = { 'X-Forwarded-For': '6.6.6.6, 203.0.113.9' };
		await start({ server: { publicPages } });
		await ask(deployment, 'GET', '/o/x', { headers: forwarded });
		await deployment.close();
		await start({ server: { publicPages, trustProxy: true } });
		await ask(deployment, 'GET', '/o/x', { headers: forwarded });
		await ask(deployment, 'GET', '/o/x', { headers: { 'X-Forwarded-For': 'nonsense' } });
		expect(ips).toEqual(['127.0.0.1', '203.0.113.9', '127.0.0.1']);
	});
});

describe('closing a server', () => {
	it('answers running requests, closes idle connections, and accepts no new ones', async () => {
		let release = () => {};
		const ready = () =>
			new Promise<null>((resolve) => {
				release = () => resolve(null);
			});
		await start({ handler: { ready } });
		const [idle, busy] = [await open(), await open()];
		idle.write(get('/'));
		await idle.read();
		const before = release;
		busy.write(get('/readyz'));
		await eventually(() => expect(release).not.toBe(before));
		const closing = deployment.server.close({ graceMs: 20_000 });
		await idle.closed();
		await expect(dial(deployment.server.url)).rejects.toThrow('ECONNREFUSED');
		release();
		expect(await busy.read()).toMatchObject({ status: 200, headers: { connection: 'close' } });
		await closing;
	});

	it('closes a connection after its pending answer', async () => {
		let closing: Promise<void> | null = null;
		const ready = async () => {
			setImmediate(() => {
				closing = deployment.server.close({ graceMs: 60_000 });
			});
			return null;
		};
		await start({ handler: { ready } });
		const wire = await open();
		wire.write(get('/readyz'));
		expect(await wire.read()).toMatchObject({ status: 200 });
		await wire.closed();
		await closing;
	});

	it('behind a proxy still accepts requests for a while, but closes each connection after the answer', async () => {
		await start({ server: { trustProxy: true } });
		const [kept, idle] = [await open(), await open()];
		for (const wire of [kept, idle]) {
			wire.write(get('/'));
			expect(await wire.read()).toMatchObject({ status: 200, headers: { connection: 'keep-alive' } });
		}
		const closing = deployment.server.close({ graceMs: 20_000, acceptMs: 1_000, idleMs: 1_000 });
		const fresh = await open();
		for (const wire of [fresh, kept]) {
			wire.write(get('/'));
			expect(await wire.read()).toMatchObject({ status: 200, headers: { connection: 'close' } });
			await wire.closed();
		}
		await idle.closed();
		await closing;
		await expect(dial(deployment.server.url)).rejects.toThrow('ECONNREFUSED');
	});

	it('aborts running requests when the grace period ends', async () => {
		let isAsked = false;
		const ready = () => {
			isAsked = true;
			return new Promise<never>(() => {});
		};
		await start({ handler: { ready } });
		const wire = await open();
		wire.write(get('/readyz'));
		await eventually(() => expect(isAsked).toBe(true));
		await deployment.server.close({ graceMs: 50 });
		expect(await wire.read()).toBe(null);
	});

	it('is necessary before another server can use its address', async () => {
		await start();
		const port = Number(new URL(deployment.server.url).port);
		await expect(deploy({ server: { port } })).rejects.toThrow('EADDRINUSE');
	});
});
