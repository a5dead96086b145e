// Mail servers that do something else than they should on the way to their certificate, and what is said of it.
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { lookAtCertificate } from '../../../src/cli/doctor/certificate.js';
import type { Finding } from '../../../src/cli/doctor/model.js';
import { startTls } from '../../../src/cli/doctor/start-tls.js';
import { makeCertificates } from '../../support/certificates.js';
import { cli } from '../../support/cli.js';
import { makeProject } from '../../support/project.js';
import { startSmtpSink } from '../../support/smtp-sink.js';

const open: (() => unknown)[] = [];
afterEach(async () => {
	for (const close of open.splice(0)) await close();
});

async function listening(server: Server): Promise<number> {
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	open.push(() => new Promise((resolve) => server.close(resolve)));
	const address = server.address();
	return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Offers STARTTLS and says "go"; what comes then is up to `then`, told with each piece it hears. */
async function offering(then: (socket: Socket) => void): Promise<number> {
	const server = createServer((socket) => {
		socket.on('error', () => {});
		socket.write('220 hello\r\n');
		let isClear = true;
		socket.on('data', (piece) => {
			const said = piece.toString('latin1');
			if (!isClear) return then(socket);
			if (/^(EHLO|HELO)/i.test(said)) socket.write('250-hello\r\n250 STARTTLS\r\n');
			else if (/^STARTTLS/i.test(said)) {
				isClear = false;
				socket.write('220 go\r\n');
			} else socket.write('250 ok\r\n');
		});
	});
	return listening(server);
}

/** Greets, and then never comes to an end. */
async function endless(greeting: string, piece: string): Promise<number> {
	const text = piece.repeat(Math.ceil(16_384 / piece.length));
	const server = createServer((socket) => {
		socket.on('error', () => {});
		const pour = () => {
			while (!socket.destroyed && socket.write(text));
		};
		socket.on('drain', pour);
		socket.write(greeting);
		pour();
	});
	return listening(server);
}

async function doctor(port: number, more: readonly string[] = []) {
	const { db } = await makeProject({ smtp: port });
	const { code, stdout } = await cli(['doctor', '--db', db, '--only', 'smtp', '-o', 'json', ...more]);
	return { code, findings: JSON.parse(stdout) as Finding[] };
}

describe('a mail server that says "go" to STARTTLS', () => {
	it('and goes on in the clear is a problem of the report, and not the end of it', async () => {
		const port = await offering((socket) => socket.write('250 still in the clear\r\n'));
		const { code, findings } = await doctor(port);
		expect({ code, findings }).toEqual({
			code: 11,
			findings: [
				expect.objectContaining({ check: 'smtp.login', level: 'problem' }),
				expect.objectContaining({
					check: 'smtp.certificate',
					level: 'problem',
					message: expect.stringMatching(/^no certificate was seen: /),
				}),
			],
		});
	});

	it('and then nothing ends with the deadline, after the report', async () => {
		const port = await offering(() => {});
		const { code, findings } = await doctor(port, ['--deadline', '300ms']);
		expect({ code, levels: findings.map(({ level }) => level) }).toEqual({
			code: 12,
			levels: ['skipped', 'skipped'],
		});
	});

	it('and then nothing ends with the time it is given, and says so', async () => {
		const controller = new AbortController();
		const port = await offering(() => controller.abort(new Error('no answer within 15 s')));
		const socket = await startTls({ host: '127.0.0.1', port, ehloName, signal: controller.signal });
		if (socket === 'refused') throw new Error('STARTTLS was offered');
		const looking = lookAtCertificate({
			...{ host: '127.0.0.1', port, ca: null, socket, signal: controller.signal },
		});
		await expect(looking).rejects.toThrow(/./);
		expect(socket.destroyed).toBe(true);
	});
});

const ehloName = 'mail.example.com';

describe('a mail server whose answer has no end', () => {
	it.each([
		['in one line', '', '2'],
		['in line after line', '220 hello\r\n', '250-AAAAAAAAAAAAAAAA\r\n'],
	])('%s is hung up on', async (_, greeting, piece) => {
		const port = await endless(greeting, piece);
		const { signal } = new AbortController();
		await expect(startTls({ host: '127.0.0.1', port, ehloName, signal })).rejects.toThrow(
			'the mail server says more than 64 KiB',
		);
	});
});

describe('the certificate of a mail server', () => {
	const certificate = async (port: number, ca: string | null) => {
		const project = await makeProject();
		const url = `smtp://127.0.0.1:${port}?tls=required`;
		await project.json(['engine', 'settings', 'set', 'smtp_url', url]);
		if (ca !== null) await project.json(['engine', 'settings', 'set', 'smtp_ca', '-'], { stdin: ca });
		const { stdout } = await project.run(['doctor', '--only', 'smtp', '-o', 'json']);
		const findings = JSON.parse(stdout) as Finding[];
		return { db: project.db, found: findings.find(({ check }) => check === 'smtp.certificate') };
	};

	it('that is asked for by its address after STARTTLS is held against that address', async () => {
		const { ca, cert, key } = await makeCertificates(['DNS:mail.example.com', 'IP:127.0.0.1']);
		const sink = await startSmtpSink({ cert, key, disabledCommands: [] });
		open.push(sink.close);
		expect((await certificate(sink.port, ca)).found).toEqual({
			check: 'smtp.certificate',
			level: 'warning',
			message: 'the certificate of 127.0.0.1 expires in 1 day',
			fix: 'the operator of the mail server has to renew it',
		});
	});

	it('of an authority that nobody knows names the setting that makes it known', async () => {
		const { cert, key } = await makeCertificates(['IP:127.0.0.1']);
		const sink = await startSmtpSink({ cert, key, disabledCommands: [] });
		open.push(sink.close);
		const { db, found } = await certificate(sink.port, null);
		expect(found).toEqual({
			check: 'smtp.certificate',
			level: 'problem',
			message: 'the certificate of 127.0.0.1 is not trusted here: its authority is unknown',
			fix: `mailctl --db ${db} engine settings set smtp_ca - < ca.pem`,
		});
	});
});
