// --ca-cert trusts a private certificate authority for every connection of a command.
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Finding } from '../../src/cli/doctor/checks.js';
import { makeCertificates } from '../support/certificates.js';
import { cli, makeHome } from '../support/cli.js';

const open: (() => unknown)[] = [];
afterEach(async () => {
	for (const close of open.splice(0)) await close();
});

describe('--ca-cert', () => {
	it.each([
		['lists', 'list'],
		['doctor', '--only', 'connection'],
	])('rejects a file without a certificate before any request: %s %s', async (...words) => {
		const file = join(await makeHome(), 'key.pem');
		await writeFile(file, '-----BEGIN PRIVATE KEY-----\n');
		const argv = [...words, '--base-url', 'https://nowhere.invalid', '--ca-cert', file];
		const { code, stderr } = await cli(argv, { env: { MAILCTL_TOKEN: 't' } });
		expect({ code, stderr }).toEqual({
			code: 2,
			stderr: `error: --ca-cert: ${file} contains no certificate\nhint: a PEM file has a line -----BEGIN CERTIFICATE-----\n`,
		});
	});

	it('reads its file only once, so that the file may be a pipe', async () => {
		const { ca, cert, key } = await makeCertificates(['IP:127.0.0.1']);
		const server = createServer({ cert, key }, (_, response) => response.end());
		await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
		open.push(() => {
			server.closeAllConnections();
			server.close();
		});
		const address = server.address();
		const port = typeof address === 'object' && address !== null ? address.port : 0;
		const target = ['--base-url', `https://127.0.0.1:${port}`, '--ca-cert', '-'];
		const argv = ['doctor', ...target, '--only', 'connection', '-o', 'json'];
		const { stdout } = await cli(argv, { stdin: ca, env: { MAILCTL_TOKEN: 't' } });
		const findings = JSON.parse(stdout) as Finding[];
		expect(findings.find(({ check }) => check === 'connection.certificate')?.message).toBe(
			'the certificate of 127.0.0.1 expires in 1 day',
		);
	});
});
