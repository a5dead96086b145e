// Deployments, looked at from the outside: a served engine, somebody else's service, and ways that lead nowhere.
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { microsPerSecond, systemClock } from '../../../src/api/datetime.js';
import type { Finding, Level } from '../../../src/cli/doctor/model.js';
import { openStore } from '../../../src/store/open.js';
import { makeCertificates, makeExpiredCertificates } from '../../support/certificates.js';
import { cli, makeHome } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { startForeign } from '../../support/foreign.js';
import { makeProject } from '../../support/project.js';
import { startServer } from '../../support/running-server.js';
import { type ServedEngine, serveEngine } from '../../support/served-engine.js';
import { startSmtpSink } from '../../support/smtp-sink.js';

const open: (() => unknown)[] = [];
afterEach(async () => {
	for (const close of open.splice(0)) await close();
});

interface Told {
	code: number;
	findings: Finding[];
	levels: Record<string, Level>;
}

async function doctor(baseUrl: string, token: string | null, more: readonly string[] = []): Promise<Told> {
	const argv = ['doctor', '--base-url', baseUrl, '-o', 'json', ...more];
	const { code, stdout } = await cli(argv, { env: token === null ? {} : { MAILCTL_TOKEN: token } });
	const findings = JSON.parse(stdout) as Finding[];
	return { code, findings, levels: Object.fromEntries(findings.map(({ check, level }) => [check, level])) };
}

async function listening(server: Server, scheme = 'http'): Promise<string> {
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	open.push(() => {
		server.closeAllConnections();
		server.close();
	});
	const { port } = server.address() as AddressInfo;
	return `${scheme}://127.0.0.1:${port}`;
}

describe('doctor on a mailctl server', () => {
	let served: ServedEngine;
	beforeAll(async () => {
		served = await serveEngine();
	});
	afterAll(() => served.close());

	it('finds nothing wrong with one that works', async () => {
		const project = await makeProject({ smtp: 1 });
		const server = await startServer(project.db);
		open.push(server.stop);
		const token = (await readFile(server.tokenFile, 'utf8')).trim();
		const { code, levels, findings } = await doctor(server.baseUrl, token);
		expect({ code, levels }).toEqual({
			code: 0,
			levels: {
				'machine.node': 'ok',
				'config.files': 'ok',
				'config.access': 'ok',
				'config.token': 'ok',
				'connection.url': 'ok',
				'connection.name': 'ok',
				'connection.port': 'ok',
				'service.answers': 'ok',
				'service.kind': 'ok',
				'service.token': 'ok',
				'service.pace': 'ok',
				'service.clock': 'ok',
				'service.ready': 'ok',
				'service.queue': 'ok',
			},
		});
		expect(findings.find(({ check }) => check === 'service.kind')?.message).toMatch(
			/^mailctl \S+ with attachments, audiences, campaigns, deliveries, .*templates, tuples$/,
		);
	});

	it('says of a wrong token where it came from', async () => {
		const { code, findings } = await doctor(served.url, 'wrong', ['--only', 'service']);
		expect({ code, token: findings.find(({ check }) => check === 'service.token') }).toEqual({
			code: 11,
			token: {
				check: 'service.token',
				level: 'problem',
				message: 'the token is refused (401)',
				fix: 'the token came from MAILCTL_TOKEN: give one there that is valid',
			},
		});
	});

	it('says that a token is missing', async () => {
		const { findings } = await doctor(served.url, null, ['--only', 'service']);
		expect(findings.find(({ check }) => check === 'service.token')).toMatchObject({
			level: 'problem',
			message: 'it wants a token, and there is none (401)',
		});
	});

	it('takes a token that may only send for what it is', async () => {
		const sink = await startSmtpSink();
		open.push(sink.close);
		const project = await makeProject({ smtp: sink.port });
		const server = await startServer(project.db);
		open.push(server.stop);
		const words = ['engine', 'tokens', 'create', '--name', 'shop', '--scope', 'send'];
		const { token } = (await project.json(words)) as { token: string };
		const { code, findings } = await doctor(server.baseUrl, token, ['--only', 'service']);
		expect({ code, token: findings.find(({ check }) => check === 'service.token') }).toMatchObject({
			code: 0,
			token: { level: 'warning', message: 'the token is accepted, and may not read lists (403)' },
		});
	});

	const queueOf = async ({ baseUrl, token }: { baseUrl: string; token: string }) => {
		const { code, findings } = await doctor(baseUrl, token, ['--only', 'service']);
		return { code, ...findings.find(({ check }) => check === 'service.queue') };
	};
	const there = 'on the machine of the server, with its --db or --profile:';

	it('says that no process sends what it accepts', async () => {
		const { code, findings } = await doctor(served.url, served.token, ['--only', 'service']);
		expect({ code, queue: findings.find(({ check }) => check === 'service.queue') }).toEqual({
			code: 0,
			queue: {
				check: 'service.queue',
				level: 'warning',
				message: 'no process sends at the moment: what it accepts waits',
				fix: 'on the machine of the server, with its --db or --profile:\nmailctl worker',
			},
		});
	});

	it('says that its queue is paused, and why', async () => {
		const project = await makeProject();
		const server = await startServer(project.db);
		open.push(server.stop);
		await project.json(['engine', 'queue', 'pause', '--reason', 'the mail server moves']);
		expect(await queueOf(server)).toEqual({
			code: 11,
			check: 'service.queue',
			level: 'problem',
			message: expect.stringMatching(/^its queue stands still: .*the mail server moves/),
			fix: `${there}\nmailctl engine queue resume`,
		});
	});

	it('names the steps by the reason of the pause', async () => {
		const project = await makeProject();
		const server = await startServer(project.db);
		open.push(server.stop);
		const smtp = 'mailctl engine smtp-test';
		await eventually(async () =>
			expect(await queueOf(server)).toMatchObject({
				message: 'its queue stands still: no mail server is configured',
				fix: `${there}\nname a mail server, then try it:\nmailctl engine init --smtp smtp://USER@HOST:587\n${smtp}`,
			}),
		);
		const store = await openStore(project.db, { clock: systemClock, mode: 'existing' });
		const now = systemClock.now();
		const fault = { kind: 'fault', reason: 'auth: 535 5.7.8 wrong password', now } as const;
		await store.queue.pause({ ...fault, retry_at: now + 60 * microsPerSecond });
		await store.close();
		expect(await queueOf(server)).toMatchObject({
			fix: expect.stringMatching(
				/^on the machine.*\ngive the login .*\n.* --smtp-password-file FILE\n.* smtp-test\n.* queue resume$/,
			),
		});
	});

	it('sees that one of the two clocks is wrong', async () => {
		const wrong = ['--only', 'service', '--now', new Date(Date.now() - 7_200_000).toISOString()];
		const { code, findings } = await doctor(served.url, served.token, wrong);
		expect({ code, clock: findings.find(({ check }) => check === 'service.clock') }).toMatchObject({
			code: 0,
			clock: { level: 'warning', message: expect.stringMatching(/^its clock is (1 hour|2 hours) ahead of/) },
		});
	});

	it('asks nothing with --offline', async () => {
		const { code, levels } = await doctor(served.url, served.token, ['--offline', '--only', 'service']);
		expect({ code, levels: new Set(Object.values(levels)) }).toEqual({
			code: 0,
			levels: new Set(['skipped']),
		});
	});
});

it('doctor on somebody else’s service writes nothing, and says that it is none of ours', async () => {
	const foreign = await startForeign();
	open.push(foreign.close);
	const { code, levels, findings } = await doctor(foreign.baseUrl, 't', ['--only', 'service']);
	expect({ code, levels, writes: foreign.writes }).toMatchObject({
		code: 0,
		levels: { 'service.kind': 'ok', 'service.ready': 'skipped' },
		writes: [],
	});
	expect(findings.find(({ check }) => check === 'service.kind')?.message).toMatch(/^not a mailctl server/);
});

describe('doctor with a configuration that cannot be read', () => {
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

	it('says which file, and looks at the rest', async () => {
		const { home, file } = await broken('config.json');
		expect(await files(home, ['--base-url', 'https://mail.example.com'])).toEqual({
			code: 11,
			findings: [
				{
					check: 'config.files',
					level: 'problem',
					message: `${file} is not valid JSON: line 1, column 2`,
					fix: 'mend the file, or move it away and log in again',
				},
			],
		});
	});

	it('judges no database that only the default would name', async () => {
		const { home, file } = await broken('config.json');
		expect((await files(home, [])).findings).toMatchObject([
			{ message: `${file} is not valid JSON: line 1, column 2` },
		]);
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

	it('refuses a profile that would be in there', async () => {
		const { home, file } = await broken('config.json');
		const { code, stderr } = await cli(['doctor', '-p', 'prod'], { env: { HOME: home } });
		expect({ code, stderr }).toMatchObject({ code: 78, stderr: expect.stringContaining(file) });
	});

	it('goes on without the token of credentials that cannot be read', async () => {
		const { home, file } = await broken('credentials.json');
		const config = { profile: 'prod', profiles: { prod: { baseUrl: 'https://mail.example.com' } } };
		await writeFile(join(home, '.config/mailctl/config.json'), JSON.stringify(config), { mode: 0o600 });
		const { code, findings } = await files(home, ['-p', 'prod']);
		expect({ code, findings }).toMatchObject({
			code: 11,
			findings: [
				{ check: 'config.files', message: `${file} is not valid JSON: line 1, column 2` },
				{ check: 'config.token', message: `${file} is not valid JSON: line 1, column 2` },
			],
		});
	});

	it('names the token of another origin, and how to get the right one', async () => {
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

describe('doctor where the way leads nowhere', () => {
	it('finds no clear text that leaves this machine in an address of IPv4 written as one of IPv6', async () => {
		const only = ['--only', 'connection', '--offline'];
		const { levels } = await doctor('http://[::ffff:127.0.0.1]:9', 't', only);
		expect(levels).toMatchObject({ 'connection.url': 'ok' });
	});

	it('says so once for each step, and skips what stands behind it', async () => {
		const { code, levels } = await doctor('http://127.0.0.1:9', 't', [
			'--skip',
			'machine',
			'--skip',
			'config',
		]);
		expect({ code, levels }).toEqual({
			code: 11,
			levels: {
				'connection.url': 'ok',
				'connection.name': 'ok',
				'connection.port': 'problem',
				'service.answers': 'problem',
				'service.kind': 'skipped',
				'service.token': 'skipped',
				'service.pace': 'skipped',
				'service.clock': 'skipped',
				'service.ready': 'skipped',
				'service.queue': 'skipped',
			},
		});
	});

	it('tells a name that does not exist once', async () => {
		const { levels } = await doctor('https://nowhere.invalid', 't', ['--only', 'connection']);
		expect(levels).toEqual({
			'connection.url': 'ok',
			'connection.name': 'problem',
			'connection.port': 'skipped',
			'connection.certificate': 'skipped',
		});
	});

	it.each([
		[503, {}, 'it answers 503: the service itself has failed'],
		[301, { location: 'https://elsewhere.example.com/' }, 'it redirects to https://elsewhere.example.com/'],
		[404, {}, 'it has no /sub/lists/: this is not the service, or its base URL has a path'],
	])('names an answer of %i', async (status, headers, message) => {
		const baseUrl = await listening(createServer((_, response) => response.writeHead(status, headers).end()));
		const { findings } = await doctor(baseUrl, 't', ['--only', 'service']);
		expect(findings.find(({ check }) => check === 'service.answers')).toMatchObject({
			level: 'problem',
			message,
		});
	});

	it('ends with its deadline, with what it knows by then', async () => {
		const baseUrl = await listening(createServer(() => {}));
		const more = ['--only', 'connection', '--only', 'service', '--deadline', '3s'];
		const { code, levels } = await doctor(baseUrl, 't', more);
		expect({ code, levels }).toMatchObject({
			code: 12,
			levels: { 'connection.port': 'ok', 'service.answers': 'skipped' },
		});
	});

	it('warns of plain http to another host, where nothing is asked', async () => {
		const { code, findings } = await doctor('http://mail.example.com', 't', [
			'--only',
			'connection',
			'--offline',
		]);
		expect({ code, url: findings[0] }).toEqual({
			code: 0,
			url: {
				check: 'connection.url',
				level: 'warning',
				message: 'plain http to mail.example.com: the token and all data go in the clear',
				fix: 'use https://mail.example.com',
			},
		});
		const strict = ['--only', 'connection', '--offline', '--strict'];
		expect((await doctor('http://mail.example.com', 't', strict)).code).toBe(11);
	});
});

describe('the certificate of a deployment', () => {
	const certificate = async (baseUrl: string, more: readonly string[] = []) => {
		const { findings } = await doctor(baseUrl, 't', ['--only', 'connection', ...more]);
		return findings.find(({ check }) => check === 'connection.certificate');
	};

	it('that has expired is a problem', async () => {
		const { cert, key } = await makeExpiredCertificates(['IP:127.0.0.1']);
		const baseUrl = await listening(createTlsServer({ cert, key }), 'https');
		expect(await certificate(baseUrl)).toMatchObject({
			level: 'problem',
			message: expect.stringMatching(/^the certificate of 127\.0\.0\.1 expired [\d,]+ days ago$/),
		});
	});

	it('of an authority that nobody knows is a problem, and of --ca-cert it is trusted', async () => {
		const { ca, cert, key } = await makeCertificates(['IP:127.0.0.1']);
		const baseUrl = await listening(createTlsServer({ cert, key }), 'https');
		expect(await certificate(baseUrl)).toMatchObject({
			level: 'problem',
			message: expect.stringMatching(/is not trusted here: its authority is unknown$/),
		});
		const file = join(await makeHome(), 'ca.pem');
		await writeFile(file, ca);
		expect(await certificate(baseUrl, ['--ca-cert', file])).toMatchObject({
			level: 'warning',
			message: 'the certificate of 127.0.0.1 expires in 1 day',
		});
	});

	it('for another name is a problem', async () => {
		const { ca, cert, key } = await makeCertificates(['DNS:mail.example.com']);
		const baseUrl = await listening(createTlsServer({ cert, key }), 'https');
		const file = join(await makeHome(), 'ca.pem');
		await writeFile(file, ca);
		expect(await certificate(baseUrl, ['--ca-cert', file])).toMatchObject({
			level: 'problem',
			message: 'the certificate of mail.example.com is not trusted here: it is for another name',
		});
	});

	it('is not there where plain http answers', async () => {
		const baseUrl = await listening(
			createServer((_, response) => response.end()),
			'https',
		);
		expect(await certificate(baseUrl)).toMatchObject({
			level: 'problem',
			message: expect.stringMatching(/^no TLS with 127\.0\.0\.1:\d+/),
		});
	});
});
