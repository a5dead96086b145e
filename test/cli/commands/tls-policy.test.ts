import type { SMTPServerOptions } from 'smtp-server';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Certificates, makeCertificates, makeExpiredCertificates } from '../../support/certificates.js';
import { makeProject } from '../../support/project.js';
import { startSmtpSink } from '../../support/smtp-sink.js';

const message = [
	'send',
	'--from',
	'news@example.com',
	'--to',
	'ann@example.net',
	'--subject',
	'S',
	'--text',
	'T',
];

async function sendTo({
	server,
	url = (port: number) => `smtp://127.0.0.1:${port}`,
	ca,
	options = { disabledCommands: [] },
}: {
	server: Certificates;
	url?: (port: number) => string;
	ca?: string;
	options?: SMTPServerOptions;
}) {
	const heard: { isSecure: boolean }[] = [];
	const sink = await startSmtpSink({
		key: server.key,
		cert: server.cert,
		...options,
		onMailFrom: (_address, session, callback) => {
			heard.push({ isSecure: session.secure });
			callback();
		},
	});
	const project = await makeProject();
	await project.json(['engine', 'settings', 'set', 'smtp_url', url(sink.port)]);
	if (ca !== undefined) await project.json(['engine', 'settings', 'set', 'smtp_ca', '-'], { stdin: ca });
	const { code, stderr } = await project.run(message);
	const [{ state, attempts }] = JSON.parse((await project.run(['messages', 'list', '-o', 'json'])).stdout);
	await sink.close();
	return { code, stderr, state, attempts, heard, received: sink.received.length };
}

/** A TLS fault pauses the queue; no delivery attempt counts, and the server saw no message. */
const paused = { code: 14, state: 'queued', attempts: 0, heard: [], received: 0 };
const encrypted = { code: 0, state: 'sent', attempts: 1, heard: [{ isSecure: true }], received: 1 };

describe('TLS to the mail server', () => {
	let good: Certificates;
	let elsewhere: Certificates;
	let expired: Certificates;
	beforeAll(async () => {
		good = await makeCertificates(['IP:127.0.0.1']);
		elsewhere = await makeCertificates(['DNS:mail.example.com']);
		expired = await makeExpiredCertificates(['IP:127.0.0.1']);
	});
	const required = (port: number) => `smtp://127.0.0.1:${port}?tls=required`;
	const implicit = (port: number) => `smtps://127.0.0.1:${port}`;

	it('is used if the server offers it, even if the certificate is invalid', async () => {
		expect(await sendTo({ server: elsewhere })).toMatchObject(encrypted);
	});

	it('accepts a certificate from the CA in the setting smtp_ca', async () => {
		expect(await sendTo({ server: good, ca: good.ca })).toMatchObject(encrypted);
		expect(await sendTo({ server: good, ca: good.ca, url: required })).toMatchObject(encrypted);
		const options = { secure: true, disabledCommands: [] };
		expect(await sendTo({ server: good, ca: good.ca, url: implicit, options })).toMatchObject(encrypted);
	});

	it('rejects a certificate for another name', async () => {
		const met = await sendTo({ server: elsewhere, ca: elsewhere.ca });
		expect(met).toMatchObject({
			...paused,
			stderr: expect.stringContaining(
				'tls: the certificate is not for 127.0.0.1, but for mail.example.com: use that name',
			),
		});
	});

	it('rejects a certificate that has expired', async () => {
		const met = await sendTo({ server: expired, ca: expired.ca });
		expect(met).toMatchObject({
			...paused,
			stderr: expect.stringContaining(
				'tls: the certificate of 127.0.0.1, or one that signed it, has expired',
			),
		});
	});

	it('rejects a certificate whose CA is neither in smtp_ca nor trusted by the system', async () => {
		expect(await sendTo({ server: good, ca: elsewhere.ca })).toMatchObject({
			...paused,
			stderr: expect.stringContaining(
				'tls: no certificate in smtp_ca has signed the certificate of 127.0.0.1',
			),
		});
		expect(await sendTo({ server: good, url: required })).toMatchObject({
			...paused,
			stderr: expect.stringContaining(
				'tls: this machine does not trust the certificate of 127.0.0.1: store your own authority in smtp_ca',
			),
		});
		const options = { secure: true, disabledCommands: [] };
		expect(await sendTo({ server: good, url: implicit, options })).toMatchObject(paused);
	});

	it('is never replaced by plain text if the server stops offering STARTTLS', async () => {
		const options = { disabledCommands: ['STARTTLS'] };
		expect(await sendTo({ server: good, ca: good.ca, options })).toMatchObject({
			...paused,
			stderr: expect.stringMatching(
				/tls: the server offers no STARTTLS, which a login, tls=required and smtp_ca require: use its TLS port/,
			),
		});
		expect(await sendTo({ server: good, url: required, options })).toMatchObject({
			...paused,
			stderr: expect.stringMatching(/offers no STARTTLS/),
		});
	});

	it('is required for a login, so that no password is sent unencrypted', async () => {
		const options: SMTPServerOptions = {
			disabledCommands: ['STARTTLS'],
			authOptional: false,
			allowInsecureAuth: true,
			onAuth: (_auth, _session, callback) => callback(null, { user: 'news' }),
		};
		const url = (port: number) => `smtp://news@127.0.0.1:${port}`;
		expect(await sendTo({ server: good, url, options })).toMatchObject({
			...paused,
			stderr: expect.stringMatching(/offers no STARTTLS/),
		});
	});

	it('is tested by smtp-test, which prints a command that corrects the setting', async () => {
		const sink = await startSmtpSink({ key: good.key, cert: good.cert, disabledCommands: [] });
		const project = await makeProject({ smtp: sink.port });
		const hint = async () => (await project.run(['engine', 'smtp-test'])).stderr.split('\n')[1];
		await project.json(['engine', 'settings', 'set', 'smtp_ca', '-'], { stdin: elsewhere.ca });
		expect(await hint()).toBe(`hint: mailctl --db ${project.db} engine settings set smtp_ca - < ca.pem`);
		await project.json(['engine', 'settings', 'set', 'smtp_url', implicit(sink.port)]);
		expect(await hint()).toBe(
			`hint: mailctl --db ${project.db} engine settings set smtp_url smtp://USER@HOST:587`,
		);
		await sink.close();
		const inClear = await startSmtpSink();
		await project.json(['engine', 'settings', 'set', 'smtp_url', required(inClear.port)]);
		expect(await hint()).toBe(
			`hint: mailctl --db ${project.db} engine settings set smtp_url smtps://USER@HOST:465`,
		);
		await inClear.close();
	});
});

describe('the setting smtp_ca', () => {
	it.each([
		'',
		'hello',
		'-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----',
	])('rejects a value that is not a certificate: %j', async (value) => {
		const project = await makeProject();
		const refused = await project.run(['engine', 'settings', 'set', 'smtp_ca', '-'], { stdin: value });
		expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('certificates in PEM') });
	});
});
