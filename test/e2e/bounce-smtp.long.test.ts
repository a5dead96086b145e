import { connect } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { describeDatabases } from '../support/databases.js';
import { makeProject, type Project } from '../support/project.js';
import { type RunningServer, startServer } from '../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';
import { talkSmtp } from '../support/smtp-talk.js';

let sink: SmtpSink;
let project: Project;
let server: RunningServer | null = null;
let returnPath: string;

async function begin(db: string): Promise<void> {
	sink = await startSmtpSink();
	project = await makeProject({ smtp: sink.port, db });
	await project.json(['engine', 'init', '--bounce-address', 'bounces@example.com']);
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'You asked for it']);
	await project.json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.org']);
	const mail = ['--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hello'];
	await project.json(['send', ...mail, '--to', 'ann@example.org']);
	returnPath = sink.received[0]?.from ?? '';
	server = await startServer(project.db, ['--bounce-smtp', '127.0.0.1:0']);
}

const bounce = [
	'From: MAILER-DAEMON@mx.example.org',
	'Subject: Undelivered Mail',
	'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
	'',
	'--b',
	'Content-Type: message/delivery-status',
	'',
	'Reporting-MTA: dns; mx.example.org',
	'',
	'Final-Recipient: rfc822; ann@example.org',
	'Action: failed',
	'Status: 5.1.1',
	'',
	'--b--',
	'.',
].join('\r\n');

const talk = (texts: readonly string[]) => talkSmtp(server?.bounceSmtp ?? '', texts);
const hello = 'EHLO mx.example.org';
const taking = (to: string) => [hello, 'MAIL FROM:<>', `RCPT TO:<${to}>`, 'DATA', bounce];
const ann = () => project.json(['subscribers', 'get', '-l', '1', 'ann@example.org']);

describeDatabases('serve --bounce-smtp', ({ create }) => {
	beforeEach(async () => begin(await create()));
	afterEach(async () => {
		await server?.stop();
		server = null;
		await sink.close();
	});

	it('records a bounce before it answers 250', async () => {
		const replies = await talk(taking(returnPath));
		expect(replies.at(-1)).toBe('250 2.0.0 Recorded');
		expect(await ann()).toMatchObject({ is_active: false, disable_reason: 'HARDBOUNCED' });
		expect(await project.json(['messages', 'list', '--status', 'bounced'])).toHaveLength(1);
		expect((await talk(taking(returnPath))).at(-1)).toBe('250 2.0.0 Recorded');
		expect((await project.json(['report'])) as object).toMatchObject({
			total: { hardbounced_percent: 100 },
		});
		expect(server?.log()).toContain('"bounce_smtp":"bounce"');
		expect(server?.log()).not.toContain('ann@example.org');
	});

	it('exits with code 0 even if a connection is silent', async () => {
		const silent = connect(Number(server?.bounceSmtp?.split(':').at(-1)), '127.0.0.1');
		await new Promise((resolve) => silent.once('data', resolve));
		silent.on('error', () => undefined);
		expect(await server?.stop()).toBe(0);
		server = null;
	});
});
