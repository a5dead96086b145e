import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.js';
import { isInstalled, runProgram } from '../../support/run-program.js';
import { type Deployment, deploy, tokens } from './serving.js';

let folder: string;
let tls: { cert: string; key: string };
let deployment: Deployment;

function get(path: string): Promise<{ status: number; body: string }> {
	return new Promise((resolve, reject) => {
		const headers = { 'X-Secure-Token': tokens.admin };
		const asked = request(
			`${deployment.server.url}${path}`,
			{ ca: tls.cert, headers, agent: false },
			(response) => {
				let body = '';
				response.on('data', (chunk: Buffer) => {
					body += chunk.toString();
				});
				response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
			},
		);
		asked.on('error', reject).end();
	});
}

describe.skipIf(!isInstalled('openssl'))('a server with a certificate', () => {
	beforeAll(async () => {
		folder = mkdtempSync(join(tmpdir(), 'mailctl-tls-'));
		const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
		const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
		const make = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2'.split(' ');
		runProgram('openssl', [...make, '-keyout', key, '-out', cert, ...subject], { stdio: 'ignore' });
		tls = { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
		deployment = await deploy({ server: { tls } });
	});
	afterAll(async () => {
		await deployment.close();
		rmSync(folder, { recursive: true });
	});

	it('uses https in its URL, and answers', async () => {
		expect(deployment.server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
		expect(await get('/sub/lists/')).toMatchObject({ status: 200 });
	});

	it('survives plain HTTP on its port', async () => {
		const socket = connect(Number(new URL(deployment.server.url).port), '127.0.0.1');
		socket.on('error', () => {});
		socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
		await eventually(() =>
			expect(socket.destroyed || socket.readableEnded || socket.resume().closed).toBe(true),
		);
		expect(await get('/healthz')).toMatchObject({ status: 200 });
	});

	it('can be closed while a handshake is unfinished', async () => {
		const other = await deploy({ server: { tls } });
		const socket = connect(Number(new URL(other.server.url).port), '127.0.0.1');
		socket.on('error', () => {});
		await new Promise((resolve) => socket.once('connect', resolve));
		await other.server.close({ graceMs: 100 });
		await eventually(() => expect(socket.closed || socket.resume().destroyed).toBe(true));
		await other.engine.close();
	});

	it('does not start if the certificate is invalid', async () => {
		await expect(deploy({ server: { tls: { cert: 'x', key: 'y' } } })).rejects.toThrow();
	});
});
