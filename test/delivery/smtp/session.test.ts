/** Replies reach the mail that they answer, whichever socket reads them: of ours in clear to one address, or nodemailer's. */
import { expect, it } from 'vitest';
import { SmtpPool } from '../../../src/delivery/smtp/pool.js';
import { plainSettings } from '../../support/delivery.js';
import { startSmtpSink } from '../../support/smtp-sink.js';

/** The last is a name to Node, and to the system's resolver the first. */
it.each(['127.0.0.1', 'localhost', '127.1'])('many connections at once open to %s', async (host) => {
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
