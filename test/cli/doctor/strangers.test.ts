// What answers at a base URL and is not the service, or says what nobody would expect of it.
import { writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Finding } from '../../../src/cli/doctor/model.js';
import { makeCertificates } from '../../support/certificates.js';
import { cli, makeHome } from '../../support/cli.js';

const open: (() => unknown)[] = [];
afterEach(async () => {
	for (const close of open.splice(0)) await close();
});

async function listening(server: Server): Promise<number> {
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	open.push(() => {
		server.closeAllConnections();
		server.close();
	});
	return (server.address() as AddressInfo).port;
}

async function doctor(baseUrl: string, more: readonly string[], env: Record<string, string> = {}) {
	const argv = ['doctor', '--base-url', baseUrl, '-o', 'json', ...more];
	const { code, stdout } = await cli(argv, { env: { MAILCTL_TOKEN: 't', ...env } });
	const findings = JSON.parse(stdout) as Finding[];
	const of = (check: string) => findings.find((one) => one.check === check);
	return { code, of };
}

/** The findings of `service.…` where every path, or those in `paths`, answers with this text. */
async function asked(text: string, { status = 200, paths = {} as Record<string, string> } = {}) {
	const answer: RequestListener = ({ url = '' }, response) => {
		const path = url.replace(/\?.*/, '');
		response.writeHead(status, { 'content-type': 'application/json' }).end(paths[path] ?? text);
	};
	return doctor(`http://127.0.0.1:${await listening(createServer(answer))}`, ['--only', 'service']);
}

describe('what answers as if it were the service', () => {
	it.each([
		['a page for people', '<html><title>Welcome</title></html>', 'a web page'],
		['nothing at all', ''],
		['an object of something else', '{"status": "ok"}'],
		['a list without its count', '{"results": []}'],
		['a count without its list', '{"count": 0, "results": {}}'],
		['a bare list', '[]'],
	])('with %s is not it, and its 200 says nothing about the token', async (_, text, what = 'something else than lists') => {
		const { code, of } = await asked(text);
		expect({ code, answers: of('service.answers'), token: of('service.token') }).toEqual({
			code: 11,
			answers: {
				check: 'service.answers',
				level: 'problem',
				message: `it is not this service: /sub/lists/ answers 200 with ${what}`,
				fix: 'look at the base URL',
			},
			token: {
				check: 'service.token',
				level: 'skipped',
				message: 'the service does not answer as it should',
				fix: null,
			},
		});
	});

	it.each([
		[429, 'warning', 'it answers 429: it is asked too often just now', 'try again later'],
		[400, 'problem', 'it answers 400 to a call that every such service takes', 'look at the base URL'],
		[418, 'problem', 'it answers 418 to a call that every such service takes', 'look at the base URL'],
	])('with %i is a %s', async (status, level, message, fix) => {
		const { of } = await asked('{}', { status });
		expect([of('service.answers'), of('service.token')]).toEqual([
			{ check: 'service.answers', level, message, fix },
			expect.objectContaining({ level: 'skipped' }),
		]);
	});
});

describe('what a server says of itself', () => {
	const page = '{"count": 0, "next": null, "previous": null, "results": []}';
	const ready = '{"detail": "fine"}';
	const saying = (root: string, more: Record<string, string> = {}) =>
		asked(page, { paths: { '/': root, '/readyz': ready, ...more } });

	it.each([
		['a version that is an object', '"version": {"toString": 1}', 'of no version with no extensions'],
		['extensions that are a number', '"version": null, "extensions": 7', 'of no version with no extensions'],
		['extensions that are none', '"version": "1.2", "extensions": [{}, "messages", 5]', '1.2 with messages'],
		['extensions that are keys', '"version": "1.2", "extensions": {"messages": 1}', '1.2 with messages'],
		['a long version', `"version": "${'9'.repeat(4_000)}"`, `${'9'.repeat(99)}… with no extensions`],
	])('with %s is read as far as it is text', async (_, members, message) => {
		const { of } = await saying(`{"service": "mailctl", ${members}}`);
		expect(of('service.kind')).toMatchObject({ level: 'ok', message: `mailctl ${message}` });
	});

	it.each([
		['an object', '{"detail": {"toString": 1}}', 'it does not say why'],
		['a long text', `{"detail": "${'n'.repeat(5_000)}"}`, `${'n'.repeat(99)}…`],
	])('of why it is not ready, with %s, is read as far as it is text', async (_, detail, message) => {
		const server = createServer(({ url = '' }, response) => {
			response.statusCode = url === '/readyz' ? 503 : 200;
			response.end(url === '/readyz' ? detail : url === '/' ? '{"service": "mailctl"}' : page);
		});
		const { of } = await doctor(`http://127.0.0.1:${await listening(server)}`, ['--only', 'service']);
		expect(of('service.ready')).toMatchObject({
			level: 'problem',
			message: `it is not ready (503): ${message}`,
		});
	});
});

it('a redirect to a place without end is named by its beginning', async () => {
	const location = `http://elsewhere.example.com/${'x'.repeat(3_000)}`;
	const server = createServer((_, response) => response.writeHead(302, { location }).end());
	const { of } = await doctor(`http://127.0.0.1:${await listening(server)}`, ['--only', 'service']);
	expect(of('service.answers')?.message).toBe(`it redirects to ${location.slice(0, 99)}…`);
});

describe('a redirect', () => {
	const fix = async (location: (origin: string) => string, base = '') => {
		let origin = '';
		const server = createServer((_, response) =>
			response.writeHead(301, { location: location(origin) }).end(),
		);
		origin = `http://127.0.0.1:${await listening(server)}`;
		return (await doctor(origin + base, ['--only', 'service'])).of('service.answers')?.fix;
	};

	it.each([
		['https://mail.example.com:8443/sub/lists/?page_size=1', 'https://mail.example.com:8443'],
		['https://mail.example.com/api/v2/sub/lists/', 'https://mail.example.com/api/v2'],
		['https://mail.example.com/', 'https://mail.example.com'],
	])('to %s names the base URL and how to give it', async (location, base) => {
		expect(await fix(() => location)).toBe(`the base URL is ${base}:\nmailctl --base-url ${base} doctor`);
	});

	it.each([
		'https://mail.example.com/login?next=/sub/lists/',
		'https://user:password@mail.example.com/sub/lists/',
		'ftp://mail.example.com/sub/lists/',
		'/sub/lists/',
		'http://[',
	])('to %s names none', async (location) => {
		expect(await fix(() => location)).toBe('look at the base URL');
	});

	it('below the same host is read with its path', async () => {
		expect(await fix(() => '/api/sub/lists/?page_size=1', '/old')).toMatch(
			/^the base URL is http:\/\/127.0.0.1:\d+\/api:\nmailctl --base-url http:\S+\/api doctor$/,
		);
	});
});

it('a stored base URL is mended by a command for its profile', async () => {
	const home = await makeHome();
	const server = createServer((_, response) =>
		response.writeHead(301, { location: '/api/sub/lists/' }).end(),
	);
	const origin = `http://127.0.0.1:${await listening(server)}`;
	const env = { HOME: home, MAILCTL_TOKEN: 't' };
	await cli(['login', `${origin}/old`, '--profile', 'prod', '--no-check'], { env });
	const { stdout } = await cli(['doctor', '-p', 'prod', '--only', 'service', '-o', 'json'], {
		env: { HOME: home },
	});
	expect(JSON.parse(stdout)[0]).toMatchObject({
		check: 'service.answers',
		fix: `the base URL is ${origin}/api:\nmailctl config set --profile prod base-url ${origin}/api`,
	});
	const words = ['config', 'set', '--profile', 'prod', 'base-url', `${origin}/api`];
	expect((await cli(words, { env: { HOME: home } })).code).toBe(0);
});

it('http:// to a port that speaks TLS is told for certain', async () => {
	const { cert, key } = await makeCertificates(['IP:127.0.0.1']);
	const host = `127.0.0.1:${await listening(createTlsServer({ cert, key }))}`;
	const { of } = await doctor(`http://${host}`, ['--only', 'service']);
	expect(of('service.answers')).toEqual({
		check: 'service.answers',
		level: 'problem',
		message: `${host} speaks TLS, and the base URL is http://`,
		fix: `the base URL is https://${host}:\nmailctl --base-url https://${host} doctor`,
	});
});

it('https:// to a port without TLS is told in words', async () => {
	const host = `127.0.0.1:${await listening(createServer(() => {}))}`;
	const { of } = await doctor(`https://${host}`, ['--only', 'connection']);
	expect(of('connection.certificate')?.message).toMatch(/^no TLS with 127.0.0.1:\d+: [a-z0-9 ]+$/);
});

describe('the way to a deployment', () => {
	const port = (baseUrl: string, env: Record<string, string>, more: readonly string[] = []) =>
		doctor(baseUrl, ['--only', 'connection', ...more], env).then(({ of }) => of('connection.port'));
	const proxied = expect.objectContaining({ level: 'skipped', message: 'a proxy is in between' });

	it('goes through the proxy that the environment names, but for what NO_PROXY names', async () => {
		const env = { HTTPS_PROXY: 'http://127.0.0.1:9', HTTP_PROXY: 'http://127.0.0.1:9' };
		const url = 'https://nowhere.invalid';
		expect(await port(url, env)).toEqual(proxied);
		expect(await port(url, { ...env, NO_PROXY: 'example.com, .invalid' })).toMatchObject({
			message: 'there is no such name',
		});
		const flag = ['--proxy', 'http://127.0.0.1:9'];
		expect(await port(url, { NO_PROXY: '.invalid' }, flag)).toEqual(proxied);
	});
});

describe('the certificate of a deployment', () => {
	it('is called by the name that was asked for, if it is for that', async () => {
		const { ca, cert, key } = await makeCertificates(['DNS:first.example.com', 'IP:127.0.0.1']);
		const baseUrl = `https://127.0.0.1:${await listening(createTlsServer({ cert, key }))}`;
		const file = join(await makeHome(), 'ca.pem');
		await writeFile(file, ca);
		const { of } = await doctor(baseUrl, ['--only', 'connection', '--ca-cert', file]);
		expect(of('connection.certificate')?.message).toBe('the certificate of 127.0.0.1 expires in 1 day');
	});

	it('of an unknown authority is mended by naming that, and one for another name by another URL', async () => {
		const { ca, cert, key } = await makeCertificates(['DNS:first.example.com']);
		const baseUrl = `https://127.0.0.1:${await listening(createTlsServer({ cert, key }))}`;
		const file = join(await makeHome(), 'ca.pem');
		await writeFile(file, ca);
		const fix = async (more: readonly string[]) =>
			(await doctor(baseUrl, ['--only', 'connection', ...more])).of('connection.certificate')?.fix;
		expect([await fix([]), await fix(['--ca-cert', file])]).toEqual([
			'--ca-cert FILE names an authority of your own',
			'give a base URL with a name that it is for',
		]);
	});
});
