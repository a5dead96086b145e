import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { classify } from '../../../src/cli/frame/exit.js';
import { type Client, createClient } from '../../../src/http/client/client.js';
import { proxyFor } from '../../../src/http/client/transport.js';
import { type Certificates, makeCertificates } from '../../support/certificates.js';
import { type ClientWishes, clientOptions, failure } from '../../support/client.js';
import { emptyPage, type HostileService, startHostileService } from '../../support/hostile-service.js';
import { type ProxyOptions, startProxy, type TunnelProxy } from '../../support/proxy.js';

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

async function service(options: Parameters<typeof startHostileService>[0] = {}): Promise<HostileService> {
	const started = await startHostileService(options);
	ends.push(started.close);
	return started;
}

async function proxy(options: ProxyOptions): Promise<TunnelProxy> {
	const started = await startProxy(options);
	ends.push(started.close);
	return started;
}

function client(wishes: ClientWishes): Client {
	const made = createClient(clientOptions(wishes));
	ends.push(made.close);
	return made;
}

const portOf = (url: string) => Number(new URL(url).port);

describe('certificates', () => {
	let trusted: Certificates;
	let other: Certificates;
	beforeAll(async () => {
		[trusted, other] = await Promise.all([
			makeCertificates(['IP:127.0.0.1', 'DNS:mail.example.com']),
			makeCertificates(['DNS:elsewhere.example']),
		]);
	});

	it('that are not trusted end the call with exit 6 before a request is sent', async () => {
		const { url, seen } = await service({ tls: trusted });
		const error = await failure(client({ baseUrl: url, remote: { retries: 3 } }).api.lists.page({}));
		expect(error).toMatchObject({ code: 'network', unanswered: false });
		expect(error.message).toContain(`no trusted connection to ${url}`);
		expect(classify(error).exit).toBe(6);
		expect(seen).toEqual([]);
	});

	it('are accepted with --ca-cert', async () => {
		const { url, seen } = await service({ tls: trusted });
		const { api } = client({ baseUrl: url, remote: { caCert: trusted.ca } });
		expect(await api.lists.page({})).toEqual(emptyPage);
		expect(seen[0]?.headers['x-secure-token']).toBe('a-secret-token');
	});

	it('must match the host, whoever signed them', async () => {
		const { url, seen } = await service({ tls: other });
		const error = await failure(client({ baseUrl: url, remote: { caCert: other.ca } }).api.lists.page({}));
		expect(error.message).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
		expect(seen).toEqual([]);
	});

	it('are not checked with --insecure, which prints a warning', async () => {
		const warnings: string[] = [];
		const { url } = await service({ tls: other });
		const { api } = client({
			baseUrl: url,
			remote: { insecure: true },
			warn: (text) => warnings.push(text),
		});
		await api.lists.page({});
		await api.lists.page({});
		expect(warnings).toEqual([`--insecure: the certificate of ${new URL(url).host} is not verified`]);
	});

	it('cause a network error if the --ca-cert file is invalid', async () => {
		const { url } = await service({ tls: trusted });
		const error = await failure(
			client({ baseUrl: url, remote: { caCert: '-----BEGIN CERTIFICATE-----\nnonsense' } }).api.lists.page(
				{},
			),
		);
		expect(error.code).toBe('network');
	});

	it('cannot be bypassed with plain HTTP: a call to a TLS port fails', async () => {
		const { url } = await service({ tls: trusted });
		const error = await failure(client({ baseUrl: url.replace('https:', 'http:') }).api.lists.page({}));
		expect([6, 7]).toContain(classify(error).exit);
	});

	it('of the service are checked even through a proxy', async () => {
		const { url, seen } = await service({ tls: trusted });
		const { url: proxyUrl, tunnels } = await proxy({ to: portOf(url) });
		const through = (remote: ClientWishes['remote']) =>
			client({ baseUrl: 'https://mail.example.com', remote: { proxy: proxyUrl, ...remote } }).api.lists.page(
				{},
			);
		expect(await through({ caCert: trusted.ca })).toEqual(emptyPage);
		expect(await through({ insecure: true })).toEqual(emptyPage);
		expect(await failure(through({}))).toMatchObject({ code: 'network', unanswered: false });
		expect(await failure(through({ caCert: other.ca }))).toMatchObject({
			code: 'network',
			unanswered: false,
		});
		expect(tunnels.map(({ target }) => target)).toEqual(Array(4).fill('mail.example.com:443'));
		expect(seen).toHaveLength(2);
	});
});

describe('a proxy', () => {
	let target: HostileService;
	beforeEach(async () => {
		target = await service();
	});

	it.each<[string, (url: string) => Partial<ClientWishes>]>([
		['--proxy', (url) => ({ remote: { proxy: url } })],
		['HTTP_PROXY', (url) => ({ env: { HTTP_PROXY: url } })],
		['http_proxy over HTTP_PROXY', (url) => ({ env: { http_proxy: url, HTTP_PROXY: 'http://127.0.0.1:9' } })],
		['a proxy without a scheme', (url) => ({ env: { HTTP_PROXY: new URL(url).host } })],
		['--proxy over the environment', (url) => ({ remote: { proxy: url }, env: { NO_PROXY: '*' } })],
	])('is used for %s', async (_, wishes) => {
		const { url, tunnels, plain } = await proxy({ to: portOf(target.url) });
		const { api } = client({ baseUrl: 'http://mail.example.com', ...wishes(url) });
		expect(await api.lists.page({})).toEqual(emptyPage);
		expect(tunnels).toEqual([]);
		expect(plain).toEqual([{ target: 'http://mail.example.com/sub/lists/', authorization: undefined }]);
		expect(target.seen[0]).toMatchObject({ url: '/sub/lists/', headers: { host: 'mail.example.com' } });
	});

	it('gets the proxy credentials, which the server never receives', async () => {
		const { host, plain } = await proxy({ to: portOf(target.url) });
		const { api } = client({
			baseUrl: 'http://mail.example.com',
			remote: { proxy: `http://ann:p%40ss@${host}` },
		});
		await api.lists.page({});
		const basic = `Basic ${Buffer.from('ann:p@ss').toString('base64')}`;
		expect(plain).toEqual([{ target: 'http://mail.example.com/sub/lists/', authorization: basic }]);
		expect(target.seen[0]?.headers).not.toHaveProperty('proxy-authorization');
	});

	it.each([
		['http://127.0.0.1'],
		['http://localhost'],
		['http://service.localhost'],
		['http://[::1]'],
		['https://127.9.9.9'],
		['http://2130706433'],
		['http://[::ffff:127.0.0.1]'],
	])('is never used for loopback: %s', (url) => {
		const env = { HTTP_PROXY: 'http://p.example', HTTPS_PROXY: 'http://p.example' };
		expect(proxyFor({ baseUrl: new URL(url), proxy: 'http://p.example', env })).toBeNull();
	});

	it.each<[string, string | null]>([
		['', 'http://tls.example'],
		['other.example, example.org', 'http://tls.example'],
		['mail.example.com:80', 'http://tls.example'],
		['ple.com', 'http://tls.example'],
		['*', null],
		['mail.example.com', null],
		['other.example .EXAMPLE.com:443', null],
		['*.example.com', null],
	])('is used unless NO_PROXY contains the host: %j', (NO_PROXY, used) => {
		const env = { HTTP_PROXY: 'http://plain.example', HTTPS_PROXY: 'tls.example', NO_PROXY };
		expect(proxyFor({ baseUrl: new URL('https://mail.example.com'), proxy: null, env })).toBe(used);
	});

	it.each([
		[407, 'https://mail.example.com'],
		[403, 'https://mail.example.com'],
		[502, 'https://mail.example.com'],
		[407, 'http://mail.example.com'],
	])('that answers %d for %s ends the call with exit 6, and the service gets nothing', async (refuse, baseUrl) => {
		const { url } = await proxy({ to: portOf(target.url), refuse });
		const { api } = client({ baseUrl, remote: { proxy: url, retries: 3 } });
		const error = await failure(api.lists.create({ name: 'a', email_reason: 'b' }));
		expect(error).toMatchObject({ code: 'network', unanswered: false });
		expect(error.message).toContain('proxy');
		expect(classify(error).exit).toBe(6);
		expect(target.seen).toEqual([]);
	});

	it('that is missing or malformed is reported without its password', async () => {
		for (const url of ['http://ann:hidden@127.0.0.1:9', 'ann:hidden@', 'ftp://ann:hidden@127.0.0.1']) {
			const { api } = client({ baseUrl: 'http://mail.example.com', remote: { proxy: url } });
			const error = await failure(api.lists.page({}));
			expect(error).toMatchObject({ code: 'network', unanswered: false });
			expect(error.message).not.toContain('hidden');
			expect(error.message).toContain('proxy');
		}
	});
});

describe('a base URL', () => {
	it.each(['', '/', '/prefix', '/prefix/', '/deep/er/'])('can end in %j', async (suffix) => {
		const { url, seen } = await service();
		await client({ baseUrl: url + suffix }).api.lists.page({ page: 2 });
		expect(seen[0]?.url).toBe(`${suffix.replace(/\/$/, '')}/sub/lists/?page=2`);
	});

	it.each([
		[
			'http://mail.example.com',
			'a-token',
			['http://mail.example.com uses plain HTTP: anyone on the network can read the token'],
		],
		[
			'http://mail.example.com',
			null,
			['http://mail.example.com uses plain HTTP: anyone on the network can read the requests'],
		],
		['http://127.0.0.1:8080', 'a-token', []],
		['http://localhost', 'a-token', []],
		['https://mail.example.com', 'a-token', []],
	])('%s with the token %j causes the warnings %j', (baseUrl, token, expected) => {
		const warnings: string[] = [];
		client({ baseUrl, token, warn: (text) => warnings.push(text) });
		expect(warnings).toEqual(expected);
	});
});

describe('connections', () => {
	it('are reused for the next call', async () => {
		const { url, connections } = await service();
		const { api } = client({ baseUrl: url });
		for (let i = 0; i < 5; i++) await api.lists.page({});
		expect(connections()).toBe(1);
	});

	it('that the service closed are not reused', async () => {
		const { url, answer, connections } = await service();
		const body = JSON.stringify({ id: 1, name: 'n' });
		answer({ kind: 'raw', text: `HTTP/1.1 201 Created\r\ncontent-length: ${body.length}\r\n\r\n${body}` });
		const { api } = client({ baseUrl: url });
		for (let i = 0; i < 30; i++) await api.lists.create({ name: 'n', email_reason: 'r' });
		expect(connections()).toBe(30);
	});

	it('are limited to 16, however many calls run at once', async () => {
		const { url, connections, seen } = await service();
		const { api } = client({ baseUrl: url });
		await Promise.all(Array.from({ length: 100 }, () => api.lists.page({})));
		expect(seen).toHaveLength(100);
		expect(connections()).toBeLessThanOrEqual(16);
	});

	it('close with the client, and pending calls end with an error', async () => {
		const { url, answer } = await service();
		answer({ kind: 'silent' });
		const one = client({ baseUrl: url });
		const call = failure(one.api.lists.page({}));
		await one.close();
		expect((await call).code).toBe('network');
	});
});
