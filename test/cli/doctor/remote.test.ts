import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { microsPerSecond, systemClock } from '../../../src/api/datetime.js';
import type { Finding } from '../../../src/cli/doctor/checks.js';
import { openStore } from '../../../src/store/open.js';
import { makeCertificates, makeExpiredCertificates } from '../../support/certificates.js';
import { cli, makeHome } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { startForeign } from '../../support/foreign.js';
import { closeNow, listenOn } from '../../support/listen.js';
import { makeProject } from '../../support/project.js';
import { startServer } from '../../support/running-server.js';
import { type ServedEngine, serveEngine } from '../../support/served-engine.js';

const open: (() => unknown)[] = [];
afterEach(async () => {
	for (const close of open.splice(0)) await close();
});

async function doctor(
	baseUrl: string,
	more: readonly string[] = [],
	{ token = 't' as string | null, env = {} as Record<string, string> } = {},
) {
	const argv = ['doctor', '--base-url', baseUrl, '-o', 'json', ...more];
	const { code, stdout } = await cli(argv, { env: token === null ? env : { MAILCTL_TOKEN: token, ...env } });
	const findings = JSON.parse(stdout) as Finding[];
	const of = (check: string) => findings.find((one) => one.check === check);
	return { code, of, levels: Object.fromEntries(findings.map(({ check, level }) => [check, level])) };
}

async function listening(server: Server, scheme = 'http'): Promise<string> {
	open.push(() => closeNow(server));
	return `${scheme}://127.0.0.1:${await listenOn(server)}`;
}

const service = ['--only', 'service'];
const connection = ['--only', 'connection'];

describe('doctor on a mailctl server', () => {
	let served: ServedEngine;
	beforeAll(async () => {
		served = await serveEngine();
	});
	afterAll(() => served.close());

	it('finds no problem, but warns if the token lacks the permission to read lists', async () => {
		const project = await makeProject({ smtp: 1 });
		const server = await startServer(project.db);
		open.push(server.stop);
		const token = (await readFile(server.tokenFile, 'utf8')).trim();
		const { code, levels, of } = await doctor(server.baseUrl, [], { token });
		expect({ code, levels }).toEqual({
			code: 0,
			levels: {
				'machine.node': 'ok',
				'config.files': 'ok',
				'config.access': 'ok',
				'config.token': 'ok',
				'connection.url': 'ok',
				'service.answers': 'ok',
				'service.kind': 'ok',
				'service.token': 'ok',
				'service.clock': 'ok',
				'service.pace': 'ok',
				'service.ready': 'ok',
				'service.queue': 'ok',
			},
		});
		expect(of('service.kind')?.message).toMatch(/^mailctl \S+ with attachments, audiences, campaigns, /);
		const words = ['engine', 'tokens', 'create', '--name', 'shop', '--scope', 'send'];
		const shop = (await project.json(words)) as { token: string };
		expect((await doctor(server.baseUrl, service, shop)).of('service.token')).toMatchObject({
			level: 'warning',
			message: 'the token is accepted, but may not read lists (403)',
		});
	});

	it('prints where a wrong token came from, and reports a missing one', async () => {
		const { code, of } = await doctor(served.url, service, { token: 'wrong' });
		expect({ code, token: of('service.token') }).toEqual({
			code: 11,
			token: {
				check: 'service.token',
				level: 'problem',
				message: 'the token is refused (401)',
				fix: 'the token comes from MAILCTL_TOKEN: set a valid one',
			},
		});
		expect((await doctor(served.url, service, { token: null })).of('service.token')).toMatchObject({
			level: 'problem',
			message: 'the service needs a token (401)',
		});
	});

	const there = 'on the machine of the server, with the same --db or --profile as the server:';

	it('reports that no worker is running', async () => {
		const { code, of } = await doctor(served.url, service, served);
		expect({ code, queue: of('service.queue') }).toEqual({
			code: 0,
			queue: {
				check: 'service.queue',
				level: 'warning',
				message: 'no worker is running, so accepted messages wait',
				fix: `${there}\nmailctl worker`,
			},
		});
	});

	it('prints why the queue is paused and what to do next', async () => {
		const project = await makeProject();
		const server = await startServer(project.db);
		open.push(server.stop);
		const queue = async () => (await doctor(server.baseUrl, service, server)).of('service.queue');
		const smtp = 'mailctl engine smtp-test';
		await eventually(async () =>
			expect(await queue()).toMatchObject({
				level: 'problem',
				message: 'the service sends nothing: no mail server is configured',
				fix: `${there}\nconfigure a mail server, then test it:\nmailctl engine init --smtp smtp://USER@HOST:587\n${smtp}`,
			}),
		);
		const store = await openStore(project.db, { clock: systemClock, mode: 'existing' });
		const now = systemClock.now();
		const fault = { kind: 'fault', reason: 'auth: 535 5.7.8 wrong password', now } as const;
		await store.queue.pause({ ...fault, retry_at: now + 60 * microsPerSecond });
		await store.close();
		expect(await queue()).toMatchObject({
			fix: expect.stringMatching(
				/^on the machine.*\nset the right password.*\n.* --smtp-password-file FILE\n.* smtp-test\n.* queue resume$/,
			),
		});
		await project.json(['engine', 'queue', 'pause', '--reason', 'the mail server moves']);
		expect(await queue()).toMatchObject({
			message: expect.stringMatching(/^the service sends nothing: .*the mail server moves/),
			fix: `${there}\nmailctl engine queue resume`,
		});
	});

	it('reports if this machine’s clock and the server’s clock differ', async () => {
		const wrong = [...service, '--now', new Date(Date.now() - 7_200_000).toISOString()];
		const { code, of } = await doctor(served.url, wrong, served);
		expect({ code, clock: of('service.clock') }).toMatchObject({
			code: 0,
			clock: {
				level: 'warning',
				message: expect.stringMatching(/^the service's clock is [12] hours? ahead of/),
			},
		});
	});
});

it('doctor on another service changes nothing, and reports that the service is not mailctl', async () => {
	const foreign = await startForeign();
	open.push(foreign.close);
	const { code, levels, of } = await doctor(foreign.baseUrl, service);
	expect({ code, levels, writes: foreign.writes }).toMatchObject({
		code: 0,
		levels: { 'service.kind': 'ok', 'service.ready': 'skipped' },
		writes: [],
	});
	expect(of('service.kind')?.message).toMatch(/^not a mailctl service/);
});

describe('an answer from the base URL', () => {
	/** Returns the findings on a service that answers each path with `text`, or with its text in `paths`. */
	async function asked(text: string, { status = 200, paths = {} as Record<string, string> } = {}) {
		const answer: RequestListener = ({ url = '' }, response) => {
			const path = url.replace(/\?.*/, '');
			response.writeHead(status, { 'content-type': 'application/json' }).end(paths[path] ?? text);
		};
		return doctor(await listening(createServer(answer)), service);
	}
	const page = '{"count": 0, "next": null, "previous": null, "results": []}';

	it.each([
		...['<html><title>Welcome</title></html>', '', '{"status": "ok"}', '{"results": []}'],
		...['{"count": 0, "results": {}}', '[]'],
	])('with the body "%s" comes from another service, so doctor skips the checks service.kind and service.token', async (text) => {
		const { code, of } = await asked(text);
		const [answers, kind, token] = ['answers', 'kind', 'token'].map((name) => of(`service.${name}`));
		expect({ code, answers, kind, token }).toMatchObject({
			code: 11,
			answers: {
				level: 'problem',
				message: '/sub/lists/ answers 200 without lists: this is not the mailing service',
				fix: 'check the base URL',
			},
			kind: { level: 'skipped', message: 'the service does not return lists' },
			token: { level: 'skipped', message: 'the service does not return lists' },
		});
	});

	it.each([
		[429, 'warning', 'the service answers 429: too many requests'],
		[503, 'problem', 'the service answers 503: server error'],
		[404, 'problem', '/sub/lists/ answers 404 without lists: this is not the mailing service'],
	])('with status %i is reported as %s', async (status, level, message) => {
		const { of } = await asked('{}', { status });
		expect(of('service.answers')).toMatchObject({ level, message });
		expect(of('service.token')?.level).toBe('skipped');
	});

	it.each([
		['{"version": {"toString": 1}, "extensions": 7}', 'of unknown version with no extensions'],
		['{"version": "1.2", "extensions": [{}, "messages", 5]}', '1.2 with messages'],
		[`{"version": "${'9'.repeat(4_000)}"}`, `${'9'.repeat(99)}… with no extensions`],
	])('may contain a version and extensions: doctor ignores values that are not text, and shortens long ones (%#)', async (members, message) => {
		const root = JSON.stringify({ service: 'mailctl', ...JSON.parse(members) });
		const { of } = await asked(page, { paths: { '/': root, '/readyz': '{}' } });
		expect(of('service.kind')).toMatchObject({ level: 'ok', message: `mailctl ${message}` });
	});

	it('is shortened if it contains a long reason why the server is not ready', async () => {
		const server = createServer(({ url = '' }, response) => {
			response.statusCode = url === '/readyz' ? 503 : 200;
			const detail = JSON.stringify({ detail: 'n'.repeat(5_000) });
			response.end(url === '/readyz' ? detail : url === '/' ? '{"service": "mailctl"}' : page);
		});
		const { of } = await doctor(await listening(server), service);
		expect(of('service.ready')).toMatchObject({
			level: 'problem',
			message: `the service is not ready (503): ${'n'.repeat(99)}…`,
		});
	});
});

it.each([
	['https://mail.example.com/api/sub/lists/', 'https://mail.example.com/api/sub/lists/'],
	[`http://elsewhere.example.com/${'x'.repeat(3_000)}`, `http://elsewhere.example.com/${'x'.repeat(70)}…`],
])('doctor reports a redirect as a problem, and prints where it leads (%#)', async (location, shown) => {
	const redirect: RequestListener = (_, response) => response.writeHead(301, { location }).end();
	const { of } = await doctor(await listening(createServer(redirect)), service);
	const message = `the service redirects to ${shown}`;
	expect(of('service.answers')).toMatchObject({ level: 'problem', message });
});

describe('doctor with an unusable configuration', () => {
	const broken = async (name: string) => {
		const home = await makeHome();
		const folder = join(home, '.config/mailctl');
		await mkdir(folder, { recursive: true, mode: 0o700 });
		await writeFile(join(folder, name), '{', { mode: 0o600 });
		return { home, file: join(folder, name) };
	};
	const files = async (home: string, argv: readonly string[]) => {
		const { code, stdout } = await cli(['doctor', '--offline', '-o', 'json', ...argv], {
			env: { HOME: home },
		});
		const findings = JSON.parse(stdout) as Finding[];
		return { code, findings: findings.filter(({ level }) => level === 'problem') };
	};

	it('prints the path of the broken file, and runs the other checks', async () => {
		const { home, file } = await broken('config.json');
		expect(await files(home, ['--base-url', 'https://mail.example.com'])).toEqual({
			code: 11,
			findings: [
				{
					check: 'config.files',
					level: 'problem',
					message: `${file} is not valid JSON`,
					fix: 'correct the file, or move it away and log in again',
				},
			],
		});
	});

	it('does not check the default database, because the configuration could name another', async () => {
		const { home, file } = await broken('config.json');
		expect((await files(home, [])).findings).toMatchObject([{ message: `${file} is not valid JSON` }]);
		const { stdout } = await cli(['doctor', '--offline', '-o', 'json'], { env: { HOME: home } });
		expect(JSON.parse(stdout)).toContainEqual(
			expect.objectContaining({
				check: 'database.file',
				level: 'skipped',
				message: 'the configuration, which may name another database, cannot be read',
			}),
		);
		const named = (await files(home, ['--db', join(home, 'none.db')])).findings;
		expect(named.map(({ check }) => check)).toEqual(['config.files', 'database.file']);
	});

	it('continues without a token if the credentials cannot be read', async () => {
		const { home, file } = await broken('credentials.json');
		const config = { profile: 'prod', profiles: { prod: { baseUrl: 'https://mail.example.com' } } };
		await writeFile(join(home, '.config/mailctl/config.json'), JSON.stringify(config), { mode: 0o600 });
		const { code, findings } = await files(home, ['-p', 'prod']);
		expect({ code, findings }).toMatchObject({
			code: 11,
			findings: [
				{ check: 'config.files', message: `${file} is not valid JSON` },
				{ check: 'config.token', message: `${file} is not valid JSON` },
			],
		});
	});

	it('prints that the token belongs to another server, and how to get the right one', async () => {
		const home = await makeHome();
		const folder = join(home, '.config/mailctl');
		await mkdir(folder, { recursive: true, mode: 0o700 });
		const config = { profiles: { prod: { baseUrl: 'https://mail.example.com' } } };
		const credentials = { tokens: { prod: { token: 't', origin: 'https://old.example.com' } } };
		await writeFile(join(folder, 'config.json'), JSON.stringify(config), { mode: 0o600 });
		await writeFile(join(folder, 'credentials.json'), JSON.stringify(credentials), { mode: 0o600 });
		expect(await files(home, ['-p', 'prod'])).toEqual({
			code: 11,
			findings: [
				{
					check: 'config.token',
					level: 'problem',
					message:
						'the token of profile "prod" belongs to https://old.example.com, not to https://mail.example.com',
					fix: 'mailctl login --profile prod --base-url https://mail.example.com',
				},
			],
		});
	});
});

describe('the connection to a server', () => {
	it('is reported once if it fails, and the checks that need it are skipped', async () => {
		const { code, levels } = await doctor('http://127.0.0.1:9', ['--skip', 'machine,config']);
		expect({ code, levels }).toEqual({
			code: 11,
			levels: {
				'connection.url': 'ok',
				'service.answers': 'problem',
				'service.kind': 'skipped',
				'service.token': 'skipped',
				'service.clock': 'skipped',
				'service.pace': 'skipped',
				'service.ready': 'skipped',
				'service.queue': 'skipped',
			},
		});
	});

	it('ends at the deadline, and doctor prints what it found until then', async () => {
		const baseUrl = await listening(createServer(() => {}));
		const { code, levels } = await doctor(baseUrl, ['--only', 'connection,service', '--deadline', '3s']);
		expect({ code, levels }).toMatchObject({
			code: 12,
			levels: { 'connection.url': 'ok', 'service.answers': 'skipped' },
		});
	});

	it('causes a warning if it leads to another machine without TLS; with --strict, doctor exits with 11', async () => {
		const offline = [...connection, '--offline'];
		const { code, of } = await doctor('http://mail.example.com', offline);
		expect({ code, url: of('connection.url') }).toMatchObject({
			code: 0,
			url: {
				level: 'warning',
				message: 'plain http exposes the token and all data on the way to mail.example.com',
				fix: 'use https://mail.example.com',
			},
		});
		expect((await doctor('http://mail.example.com', [...offline, '--strict'])).code).toBe(11);
		const { levels } = await doctor('http://[::ffff:127.0.0.1]:9', offline);
		expect(levels).toMatchObject({ 'connection.url': 'ok' });
	});

	it('uses HTTPS_PROXY except for hosts in NO_PROXY, and uses --proxy for every host', async () => {
		const proxy = 'http://127.0.0.1:9';
		const way = async (env: Record<string, string>, more: readonly string[] = []) =>
			(await doctor('https://nowhere.invalid', [...connection, ...more], { env })).of(
				'connection.certificate',
			)?.message;
		const proxied = 'the connection goes through a proxy';
		expect([
			await way({ HTTPS_PROXY: proxy, HTTP_PROXY: proxy }),
			await way({ HTTPS_PROXY: proxy, NO_PROXY: 'example.com, .invalid' }),
			await way({ NO_PROXY: '.invalid' }, ['--proxy', proxy]),
		]).toEqual([proxied, 'no connection', proxied]);
	});
});

describe('the certificate of a server', () => {
	const certificate = async (server: Server, ca?: string) => {
		const file = join(await makeHome(), 'ca.pem');
		if (ca !== undefined) await writeFile(file, ca);
		const more = ca === undefined ? connection : [...connection, '--ca-cert', file];
		return (await doctor(await listening(server, 'https'), more)).of('connection.certificate');
	};

	it('causes a warning if it expires soon, even if --ca-cert contains its CA', async () => {
		const { ca, cert, key } = await makeCertificates(['DNS:first.example.com', 'IP:127.0.0.1']);
		expect(await certificate(createTlsServer({ cert, key }), ca)).toMatchObject({
			level: 'warning',
			message: 'the certificate of 127.0.0.1 expires in 1 day',
		});
	});

	it.each([
		['has expired', makeExpiredCertificates, 'IP:127.0.0.1', /certificate/],
		['is for another name', makeCertificates, 'DNS:mail.example.com', /certificate/],
		['is not there', null, '', /^no trusted TLS with 127\.0\.0\.1:\d+: [a-z0-9 ]+$/],
	] as const)('is a problem if it %s', async (_, make, name, message) => {
		const made = make === null ? null : await make([name]);
		const server = made === null ? createServer((_, response) => response.end()) : createTlsServer(made);
		expect(await certificate(server)).toMatchObject({
			level: 'problem',
			message: expect.stringMatching(message),
			fix: 'if you run your own certificate authority, add --ca-cert FILE',
		});
	});
});
