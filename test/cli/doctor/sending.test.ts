import { randomUUID } from 'node:crypto';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { microsPerSecond, systemClock } from '../../../src/api/datetime.js';
import { refusedSenderReason } from '../../../src/api/pauses.js';
import type { Finding } from '../../../src/cli/doctor/checks.js';
import { openStore } from '../../../src/store/open.js';
import type { Store } from '../../../src/store/store.js';
import { makeCertificates, makeExpiredCertificates } from '../../support/certificates.js';
import { cli } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { listenOn } from '../../support/listen.js';
import { makeProject, type Project } from '../../support/project.js';
import { createQueuedDatabase } from '../../support/queued-database.js';
import { startServer } from '../../support/running-server.js';
import { startFaultServer } from '../../support/smtp-fault.js';
import { startSmtpSink } from '../../support/smtp-sink.js';

type Told = Omit<Finding, 'check'>;

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
	for (const close of open.splice(0)) await close();
});

async function found(db: string, check: string, more: readonly string[] = []): Promise<Told[]> {
	const [group = ''] = check.split('.');
	const { stdout } = await cli(['doctor', '--db', db, '--only', group, '-o', 'json', ...more]);
	const all = JSON.parse(stdout) as Finding[];
	return all.flatMap(({ check: name, ...rest }) => (name === check ? [rest] : []));
}

describe('the settings for sending', () => {
	let project: Project;
	beforeEach(async () => {
		project = await makeProject({ sender: false });
	});
	const set = (name: string, value: string) => project.json(['engine', 'settings', 'set', name, value]);

	it('are a problem if the sender or the mail server is missing, and doctor prints the command that adds it', async () => {
		const line = `mailctl --db ${project.db}`;
		expect(await found(project.db, 'settings.senders')).toEqual([
			{
				level: 'problem',
				message: 'no sender, so nothing can be sent',
				fix: `${line} senders add ADDRESS`,
			},
		]);
		expect(await found(project.db, 'settings.smtp')).toEqual([
			{
				level: 'problem',
				message: 'no mail server, so nothing can be sent',
				fix: `${line} engine init --smtp smtp://USER@HOST:587`,
			},
		]);
	});

	it('are a problem if they have a user name but no password', async () => {
		await set('smtp_url', 'smtp://news@mail.example.com');
		expect(await found(project.db, 'settings.smtp')).toEqual([
			{
				level: 'problem',
				message: 'no password is set for news at mail.example.com:587',
				fix: `mailctl --db ${project.db} engine init --smtp-password-file FILE`,
			},
		]);
	});

	it('cause a warning if mail to another machine is sent without TLS', async () => {
		await set('smtp_url', 'smtp://mail.example.com:25?tls=never');
		expect(await found(project.db, 'settings.smtp')).toMatchObject([
			{ level: 'warning', message: 'mail goes to mail.example.com:25 without TLS' },
		]);
	});

	it.each([
		[null, 'mail.example.com', /^no public URL is set, so mails have no tracking/],
		[null, '127.0.0.1:25', /^no public URL is set, so links in mails lead to this machine/],
		['http://localhost:8080', 'mail.example.com', /works only on this machine/],
		['http://mail.example.com', 'mail.example.com', /plain http/],
	])('cause a warning with the public URL %s and the mail server %s', async (url, smtp, says) => {
		await set('smtp_url', `smtp://${smtp}`);
		if (url !== null) await set('public_url', url);
		expect(await found(project.db, 'settings.public-url')).toMatchObject([
			{ level: 'warning', message: expect.stringMatching(says) },
		]);
	});
});

describe('the public URL', () => {
	it('is fine if it answers, even with 404', async () => {
		const server = createHttpServer((_, response) => response.writeHead(404).end());
		const port = await listening(server);
		const project = await makeProject();
		await project.json(['engine', 'settings', 'set', 'public_url', `http://127.0.0.1:${port}`]);
		expect(await found(project.db, 'connection.public-url')).toEqual([
			{ level: 'ok', message: `http://127.0.0.1:${port} answers`, fix: null },
		]);
	});

	it('causes a warning if it does not answer', async () => {
		const project = await makeProject();
		await project.json(['engine', 'settings', 'set', 'public_url', 'http://127.0.0.1:4']);
		expect(await found(project.db, 'connection.public-url')).toMatchObject([
			{
				level: 'warning',
				message: 'http://127.0.0.1:4 does not answer this machine: connection refused',
				fix: `mailctl --db ${project.db} serve`,
			},
		]);
	});
});

describe('the mail server', () => {
	async function on(sink: { port: number; close(): Promise<unknown> }, url: (port: number) => string) {
		open.push(sink.close);
		const project = await makeProject();
		await project.json(['engine', 'settings', 'set', 'smtp_url', url(sink.port)]);
		return project;
	}
	const plain = (port: number) => `smtp://127.0.0.1:${port}`;
	const required = (port: number) => `smtp://127.0.0.1:${port}?tls=required`;

	it('is reported as fine if it accepts the sender; doctor sends no mail', async () => {
		const server = await startFaultServer({});
		const { db } = await on(server, plain);
		const says = new RegExp(`^127\\.0\\.0\\.1:${server.port} accepts mail from news@example.com \\(`);
		expect(await found(db, 'smtp.login')).toMatchObject([
			{ level: 'ok', message: expect.stringMatching(says), fix: null },
		]);
		const said = () => server.lines.map((line) => line.replace(/ .*/, ''));
		await eventually(() => expect(said()).toEqual(['EHLO', 'MAIL', 'RSET', 'QUIT']));
		expect(server.bodies).toEqual([]);
	});

	it('rejects the bounce address; doctor and smtp-test print its reply', async () => {
		const answer = '553 5.7.1 Sender address rejected: not owned by user';
		const on553 = (phase: string, line: string) =>
			phase === 'MAIL' && line.includes('<bounces@example.com>') ? { answer } : undefined;
		const server = await startFaultServer({ on: on553 });
		const project = await on(server, plain);
		await project.json(['engine', 'settings', 'set', 'bounce_address', 'bounces@example.com']);
		const message = `127.0.0.1:${server.port} refuses mail from bounces@example.com: mail: ${answer}`;
		const remedy = `allow the sender at the mail server, or use another sender: mailctl --db ${project.db} senders add ADDRESS`;
		expect(await found(project.db, 'smtp.login')).toEqual([{ level: 'problem', message, fix: remedy }]);
		expect(await project.run(['engine', 'smtp-test'])).toMatchObject({
			code: 6,
			stderr: `error: ${message}\nhint: ${remedy}\n`,
		});
	});

	it('is tested only up to the login if there is no sender', async () => {
		const sink = await startSmtpSink();
		open.push(sink.close);
		const project = await makeProject({ smtp: sink.port, sender: false });
		expect(await found(project.db, 'smtp.login')).toMatchObject([
			{
				level: 'ok',
				message: expect.stringMatching(/ answers \(.*\); no sender was tried, because there is none$/),
			},
		]);
	});

	it('is reported once if it refuses connections', async () => {
		const { db } = await makeProject({ smtp: 9 });
		expect(await found(db, 'smtp.login')).toEqual([
			{
				level: 'problem',
				message: '127.0.0.1:9: connect ECONNREFUSED: connection refused',
				fix: `mailctl --db ${db} engine init --smtp smtp://USER@HOST:587`,
			},
		]);
		expect(await found(db, 'smtp.certificate')).toMatchObject([{ level: 'skipped' }]);
	});

	it('rejects a wrong password; doctor and sending commands print how to set the right one', async () => {
		const sink = await startSmtpSink({
			onAuth: (_auth, _session, refuse) => refuse(new Error('wrong password')),
		});
		const project = await on(sink, (port) => `smtp://news@127.0.0.1:${port}?tls=never`);
		await project.json(['engine', 'settings', 'set', 'smtp_password', '-'], { stdin: 'wrong' });
		const hint = `mailctl --db ${project.db} engine init --smtp-password-file FILE sets the password`;
		expect(await found(project.db, 'smtp.login')).toMatchObject([
			{ level: 'problem', message: expect.stringContaining(': auth: 535'), fix: hint },
		]);
		const mail = 'send --from news@example.com --to a@example.com --subject S --text x'.split(' ');
		for (const words of [['engine', 'smtp-test'], mail, ['worker', '--drain']])
			expect((await project.run(words)).stderr, words.join(' ')).toContain(`\nhint: ${hint}\n`);
	});

	it('causes only a warning if its certificate has expired and TLS is optional', async () => {
		const { cert, key } = await makeExpiredCertificates(['IP:127.0.0.1']);
		const { db } = await on(await startSmtpSink({ cert, key, disabledCommands: [] }), plain);
		expect(await found(db, 'smtp.certificate')).toEqual([
			{
				level: 'warning',
				message: expect.stringMatching(/^the certificate of 127\.0\.0\.1 expired [\d,]+ days ago$/),
				fix: 'ask the operator of the mail server to renew the certificate',
			},
		]);
	});

	it.each([
		['after STARTTLS', required, { disabledCommands: [] }],
		['from the first byte', (port: number) => `smtps://127.0.0.1:${port}`, { secure: true }],
	])('with TLS %s is trusted after the user adds its CA to smtp_ca', async (_, url, options) => {
		const { ca, cert, key } = await makeCertificates(['DNS:mail.example.com', 'IP:127.0.0.1']);
		const project = await on(await startSmtpSink({ cert, key, ...options }), url);
		expect(await found(project.db, 'smtp.login')).toEqual([
			{
				level: 'problem',
				message: expect.stringMatching(/: tls: this machine does not trust the certificate of /),
				fix: `mailctl --db ${project.db} engine settings set smtp_ca - < ca.pem`,
			},
		]);
		expect(await found(project.db, 'smtp.certificate')).toMatchObject([{ level: 'skipped' }]);
		await project.json(['engine', 'settings', 'set', 'smtp_ca', '-'], { stdin: ca });
		expect(await found(project.db, 'smtp.certificate')).toMatchObject([
			{ level: 'warning', message: 'the certificate of 127.0.0.1 expires in 1 day' },
		]);
	});

	it('is a problem if smtp_url requires TLS and the server offers none', async () => {
		const { db } = await on(await startSmtpSink(), required);
		expect(await found(db, 'smtp.login')).toMatchObject([
			{ level: 'problem', fix: `mailctl --db ${db} engine settings set smtp_url smtps://USER@HOST:465` },
		]);
	});

	it('does not delay the report if it never answers', async () => {
		const port = await listening(createServer());
		const { db } = await makeProject({ smtp: port });
		const { code, stdout } = await cli([
			...['doctor', '--db', db, '--only', 'smtp', '-o', 'json', '--deadline', '300ms'],
		]);
		expect({ code, levels: (JSON.parse(stdout) as Finding[]).map(({ level }) => level) }).toEqual({
			code: 12,
			levels: ['skipped', 'skipped'],
		});
	});
});

describe('doctor’s check of the queue', () => {
	let db: string;
	beforeEach(async () => {
		({ path: db } = await createQueuedDatabase(3));
	});
	const later = (hours: number) => ['--now', new Date(Date.now() + hours * 3_600_000).toISOString()];
	const withStore = async (work: (store: Store) => Promise<unknown>) => {
		const store = await openStore(db, { clock: systemClock, mode: 'existing' });
		await work(store);
		await store.close();
	};

	it('prints the reason of a manual pause, and how to resume', async () => {
		await cli(['engine', 'queue', 'pause', '--db', db, '--reason', 'the mail server moves']);
		expect(await found(db, 'queue.paused')).toEqual([
			{
				level: 'problem',
				message: expect.stringMatching(/^it was paused by hand at \d{4}-.* UTC: the mail server moves$/),
				fix: `mailctl --db ${db} engine queue resume`,
			},
		]);
	});

	it('prints that a restore paused the queue, and what to do', async () => {
		const backup = `${db}.backup`;
		await cli(['engine', 'backup', backup, '--db', db]);
		const restored = await cli(['engine', 'restore', backup, '--db', db, '--confirm', 'restore']);
		expect(restored.code).toBe(0);
		expect(await found(db, 'queue.paused')).toMatchObject([
			{
				message: expect.stringMatching(
					/^it was paused by engine restore at .* UTC: restored from .*\.backup of [\d: -]+UTC: 3 waiting messages may have been sent since the backup$/,
				),
				fix: [
					'messages sent after the backup are queued again: cancel them, then resume:',
					`mailctl --db ${db} messages list --status queued`,
					`mailctl --db ${db} messages list --status deferred`,
					`mailctl --db ${db} messages cancel UUID`,
					`mailctl --db ${db} engine queue resume`,
				].join('\n'),
			},
		]);
		const { stdout } = await cli(['engine', 'status', '--db', db, '-o', 'table'], { columns: 200 });
		expect(stdout).toContain('paused by engine restore since');
	});

	const login = 'set the right password, test it, then resume:';
	const server = 'fix the cause, test the mail server, then resume:';
	const sender = 'allow the sender at the mail server, or use another sender, then resume:';

	it.each([
		['auth: 535 5.7.8 wrong password', login, 'engine init --smtp-password-file FILE'],
		['mail: 530 5.7.0 Authentication required', login, 'engine init --smtp-password-file FILE'],
		['connect: ECONNREFUSED', server, 'doctor --only smtp'],
	])('quotes the mail server’s reply that paused the queue, and prints what to do (%s)', async (reason, what, first) => {
		const pause = { kind: 'fault', reason, now: systemClock.now() } as const;
		await withStore((store) =>
			store.queue.pause({ ...pause, retry_at: systemClock.now() + 3_600 * microsPerSecond }),
		);
		const [told] = await found(db, 'queue.paused');
		expect(told).toMatchObject({
			level: 'problem',
			fix: [
				what,
				...[first, 'engine smtp-test', 'engine queue resume'].map((words) => `mailctl --db ${db} ${words}`),
			].join('\n'),
		});
		expect(told?.message).toMatch(/^the mail server is not accepting mail since .* UTC: /);
		expect(told?.message).toContain(`: ${reason}; a worker tries again in `);
		expect(told?.message).toMatch(/ (59 minutes|1 hour)$/);
	});

	it('warns about due messages without a worker, and reports a problem after three hours', async () => {
		expect(await found(db, 'queue.waiting')).toMatchObject([
			{ level: 'warning', fix: `mailctl --db ${db} worker` },
		]);
		expect(await found(db, 'queue.waiting', later(3))).toEqual([
			{
				level: 'problem',
				message: '3 messages are due, the oldest for 3 hours, and no worker is running',
				fix: `mailctl --db ${db} worker`,
			},
		]);
	});

	it('does not count serve --no-worker as a worker', async () => {
		const server = await startServer(db, ['--no-worker']);
		open.push(server.stop);
		expect(await found(db, 'queue.waiting', later(3))).toMatchObject([
			{ level: 'problem', message: '3 messages are due, the oldest for 3 hours, and no worker is running' },
		]);
		expect(await found(db, 'queue.workers')).toMatchObject([
			{ level: 'ok', message: 'no worker is running' },
		]);
		const { stdout } = await cli(['engine', 'queue', 'stats', '--db', db, '-o', 'json']);
		expect(JSON.parse(stdout)).toMatchObject({ workers: [] });
	});

	it('prints which limit delays messages, and for how long', async () => {
		await cli(['engine', 'settings', 'set', '--db', db, 'recipient_domain_limits', 'example.net=1/2d']);
		await withStore((store) => store.queue.lease(leasing()));
		expect(await found(db, 'queue.limits')).toEqual([
			{
				level: 'warning',
				message: expect.stringMatching(
					/^recipient_domain_limits example\.net=1\/2d delays 2 messages until \d{4}-.* UTC or later$/,
				),
				fix: `mailctl --db ${db} engine settings get recipient_domain_limits`,
			},
		]);
	});

	it('prints which process stopped, and how many messages it was sending', async () => {
		await withStore((store) =>
			store.queue.lease({ ...leasing(), owner: `elsewhere:4711:${randomUUID()}`, max: 2 }),
		);
		expect(await found(db, 'queue.workers')).toMatchObject([
			{ level: 'warning', message: 'process 4711 on elsewhere stopped while it was sending 2 messages' },
		]);
	});

	it('prints which message a worker was preparing when it stopped', async () => {
		const at = systemClock.now() + 60 * microsPerSecond;
		const store = await openStore(db, { clock: { now: () => at }, mode: 'existing' });
		const [first] = await store.queue.lease({ ...leasing(), now: at, until: at + 1, max: 1 });
		const { message = '', fence = 0 } = first ?? {};
		await store.queue.beginComposing({ message, fence });
		await store.queue.lease({ ...leasing(), now: at + 1, until: at + 2, max: 9 });
		await store.close();
		expect(await found(db, 'queue.unfinished')).toEqual([
			{
				level: 'warning',
				message: expect.stringMatching(
					`^a worker stopped while preparing message ${message}; a worker tries again `,
				),
				fix: `mailctl --db ${db} messages get ${message}`,
			},
		]);
	});

	it('prints which sender the mail server rejects, and what to do', async () => {
		const reason = refusedSenderReason('news@example.com', '553 5.7.1 Sender address rejected');
		const pause = { kind: 'fault', reason, now: systemClock.now(), retry_at: systemClock.now() } as const;
		await withStore((store) => store.queue.pause(pause));
		expect(await found(db, 'queue.paused')).toEqual([
			{
				level: 'problem',
				message: expect.stringMatching(
					/^the mail server refuses the sender news@example.com since .* UTC: 553 5.7.1 Sender address rejected; /,
				),
				fix: `${sender}\nmailctl --db ${db} engine smtp-test\nmailctl --db ${db} engine queue resume`,
			},
		]);
	});

	it('reports deferred messages whose sender the mail server rejects, and prints what to do', async () => {
		await withStore((store) => settle(store, 'deferred', '553 5.7.1 Sender address rejected'));
		expect(await found(db, 'queue.replies')).toEqual([
			{
				level: 'warning',
				message: '3 deferred: 553 5.7.1 Sender address rejected',
				fix: `${sender}\nmailctl --db ${db} engine smtp-test\nmailctl --db ${db} engine queue resume`,
			},
		]);
	});

	it('warns about messages whose outcome is uncertain', async () => {
		await withStore((store) => settle(store, 'uncertain'));
		expect(await found(db, 'queue.uncertain')).toMatchObject([
			{ level: 'warning', fix: `mailctl --db ${db} messages list --status uncertain` },
		]);
	});

	it('reports a problem if this machine’s clock is behind the time of a record', async () => {
		expect(await found(db, 'database.clock', later(-48))).toMatchObject([
			{
				level: 'problem',
				message: expect.stringMatching(
					/^this machine's clock shows .* UTC, but the newest record is from .* UTC$/,
				),
			},
		]);
	});
});

function listening(server: Server): Promise<number> {
	open.push(() => new Promise((resolve) => server.close(resolve)));
	return listenOn(server);
}

function leasing() {
	const now = systemClock.now();
	return {
		owner: `here:1:${randomUUID()}`,
		now,
		until: now + 600 * microsPerSecond,
		max: 10,
		scope: null,
	};
}

async function settle(
	store: Store,
	kind: 'deferred' | 'uncertain',
	said = '451 4.7.1 try later',
): Promise<void> {
	const wanted = leasing();
	const leased = await store.queue.lease(wanted);
	const [code, enhanced = '', ...words] = said.split(' ');
	const reply = { phase: 'rcpt' as const, code: Number(code), enhanced, text: words.join(' ') };
	const outcome = kind === 'deferred' ? { kind, reply, due_at: wanted.until } : { kind, reply };
	await store.queue.settle({
		settlements: leased.map(({ message, fence }) => ({ message, fence, at: wanted.now, outcome })),
	});
}
