/**
 * mailctl uses its own socket for plain connections to IP addresses, and nodemailer's for all others. With both, each
 * reply must reach its mail.
 */
import { describe, expect, it } from 'vitest';
import { SmtpPool } from '../../../src/delivery/smtp/pool.js';
import { PhaseTracker, replyOf } from '../../../src/delivery/smtp/session.js';
import { ehloName } from '../../../src/delivery/smtp/settings.js';
import { wireBody } from '../../../src/delivery/smtp/transaction.js';
import { plainSettings } from '../../support/delivery.js';
import { startSmtpSink } from '../../support/smtp-sink.js';

/** Node treats 127.1 as a name, and the system's resolver as an address. */
it.each(['127.0.0.1', 'localhost', '127.1'])('200 mails to %s use five connections', async (host) => {
	const sink = await startSmtpSink({
		onData: (stream, { envelope }, callback) => {
			stream.resume();
			const [to] = envelope.rcptTo.map(({ address }) => address);
			stream.on('end', () => callback(null, `queued for ${to} ${'x'.repeat(Number(to?.slice(1, 4)))}`));
		},
	});
	const pool = new SmtpPool({ settings: plainSettings(sink.port, { host }) });
	const bytes = Buffer.from('Subject: Hello\r\n\r\nHello\r\n');
	const mails = Array.from({ length: 200 }, (_, at) => `p${String(at).padStart(3, '0')}@example.net`);
	const conversations = await Promise.all(
		mails.map((to) => pool.send({ from: 'news@example.com', to, copies: [], bytes })),
	);
	pool.close();
	expect(conversations.map(({ kind, reply }) => `${kind} ${reply.text}`)).toEqual(
		mails.map((to, at) => `accepted queued for ${to} ${'x'.repeat(at)}`.trim()),
	);
	expect(sink.connections).toBe(5);
	await sink.close();
});

describe('the opening of a session', () => {
	it('enters a new phase at each command: EHLO, STARTTLS and AUTH', () => {
		const phases: string[] = [];
		const tracker = new PhaseTracker((phase) => phases.push(phase));
		expect(tracker.phase).toBe('connect');
		for (const line of ['EHLO me', 'STARTTLS', 'EHLO me', 'AUTH PLAIN'])
			tracker.note({ from: 'client', line });
		expect(phases).toEqual(['ehlo', 'tls', 'ehlo', 'auth']);
	});

	it('keeps the keywords of EHLO with their parameters', () => {
		const tracker = new PhaseTracker(() => undefined);
		tracker.note({ from: 'client', line: 'EHLO me' });
		tracker.note({
			from: 'server',
			line: '250-mx.test Hi\n250-size 1000\n250-AUTH=PLAIN LOGIN\n250 Pipelining',
		});
		expect([...tracker.extensions]).toEqual([
			['SIZE', '1000'],
			['AUTH', 'PLAIN LOGIN'],
			['PIPELINING', ''],
		]);
	});

	it('discards extensions that the server offered before STARTTLS', () => {
		const tracker = new PhaseTracker(() => undefined);
		tracker.note({ from: 'client', line: 'EHLO me' });
		tracker.note({ from: 'server', line: '250-mx.test\n250-PIPELINING\n250 STARTTLS' });
		tracker.note({ from: 'client', line: 'STARTTLS' });
		expect(tracker.extensions.size).toBe(0);
		tracker.note({ from: 'client', line: 'EHLO me' });
		tracker.note({ from: 'server', line: '250-mx.test\n250 8BITMIME' });
		expect([...tracker.extensions.keys()]).toEqual(['8BITMIME']);
	});
});

function failed(code: string, originalCode: string, message: string, more = {}) {
	const error = Object.assign(new Error(message), { code, originalCode, ...more });
	const settings = plainSettings(25, { host: 'mail.example.invalid' });
	return replyOf(error, { phase: 'connect', settings, offersTls: false, hide: (text) => text }).reply.text;
}

describe('a failed connection', () => {
	it.each([
		[
			failed('EDNS', 'ENOTFOUND', 'getaddrinfo ENOTFOUND mail.example.invalid', { syscall: 'getaddrinfo' }),
			'connect ENOTFOUND mail.example.invalid:25: unknown host',
		],
		[
			failed('EDNS', 'EAI_AGAIN', 'getaddrinfo EAI_AGAIN mail.example.invalid', { syscall: 'getaddrinfo' }),
			'connect EAI_AGAIN mail.example.invalid:25: the name server does not answer',
		],
		[
			failed('ESOCKET', 'ECONNREFUSED', 'connect ECONNREFUSED 192.0.2.1:25', {
				address: '192.0.2.1',
				port: 25,
			}),
			'connect ECONNREFUSED 192.0.2.1:25: connection refused',
		],
		[failed('ESOCKET', 'EMFILE', 'connect EMFILE 192.0.2.1:25'), 'connect EMFILE 192.0.2.1:25'],
		[
			failed('ETIMEDOUT', 'ETIMEDOUT', 'Connection timeout'),
			'connect ETIMEDOUT mail.example.invalid:25: connection timed out',
		],
	])('is reported as %s', (told, expected) => {
		expect(told).toBe(expected);
	});
});

const url = 'https://news.example.org/m';

it.each<[string, string | null, string, string | null, string | null, string]>([
	['the setting first', 'out.example.com', 'mx.example.net', url, 'a@example.com', 'out.example.com'],
	['a full machine name', null, 'mx.example.net', url, 'a@example.com', 'mx.example.net'],
	['not the name of a container', null, '3f2a9c1b7d4e', url, 'a@example.com', 'news.example.org'],
	['not an invalid name', null, 'web_1.prod_', url, 'a@example.com', 'news.example.org'],
	['not the machine’s address', null, '10.0.0.7', url, 'a@example.com', 'news.example.org'],
	['the sender’s domain, if nothing else is known', null, 'web', null, 'a@example.com', 'example.com'],
	['not the name of a local URL', null, 'web', 'http://localhost:8080', 'a@example.com', 'example.com'],
	[
		'not an IPv4 address of the URL',
		null,
		'web',
		'http://127.0.0.1:8080',
		'a@Bücher.example',
		'xn--bcher-kva.example',
	],
	['not an IPv6 address of the URL', null, 'web', 'http://[::1]:8080', 'a@example.com', 'example.com'],
	['an address literal, if nothing else is known', null, 'web', null, null, '[127.0.0.1]'],
])('the EHLO name is %s', (_, smtpEhloName, machine, publicUrl, sender, name) => {
	expect(ehloName({ smtpEhloName, publicUrl }, sender, machine)).toBe(name);
});

describe('a body on the wire', () => {
	it.each([
		['is unchanged if no line begins with a dot', 'a\r\nb.c\r\n', 'a\r\nb.c\r\n'],
		['has dots doubled at the start of lines', '.a\r\n..b\r\nc.\r\n.\r\n', '..a\r\n...b\r\nc.\r\n..\r\n'],
		['ends its last line with CRLF', 'a', 'a\r\n'],
		['ends a last line that has only LF with CRLF', 'a\n', 'a\r\n'],
		[
			'does not end early at a server that accepts LF as a line end',
			'a\n.\nMAIL FROM:<b>\r\n',
			'a\r\n..\r\nMAIL FROM:<b>\r\n',
		],
		['does not end at LF dot CRLF', 'a\n.\r\nb\r\n', 'a\r\n..\r\nb\r\n'],
		['does not end at CR dot CR', 'a\r.\rb\r\n', 'a\r\n..\r\nb\r\n'],
		['does not end at CR dot CRLF', 'a\r.\r\nb\r\n', 'a\r\n..\r\nb\r\n'],
		['keeps bytes beyond ASCII', '.é\r\n', '..é\r\n'],
		['can be empty', '', ''],
	])('%s', (_name, written, sent) => {
		expect(wireBody(Buffer.from(written)).toString()).toBe(sent);
	});
});
