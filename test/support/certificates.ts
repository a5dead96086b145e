/** A certificate authority and a certificate of a server, made by openssl for one test run. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface Certificates {
	/** PEM of the authority. */
	ca: string;
	/** PEM; for `names`, signed by the authority. */
	cert: string;
	key: string;
}

/** `names` as openssl has them: `IP:127.0.0.1`, `DNS:mail.example.com`. */
export async function makeCertificates(names: readonly string[]): Promise<Certificates> {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-certificates-'));
	const openssl = (line: string) => promisify(execFile)('openssl', line.split(' '), { cwd: folder });
	const ec = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';
	await openssl(`req -x509 ${ec} -keyout ca.key -out ca.pem -days 2 -subj /CN=Test-Authority`);
	await openssl(
		`req -x509 ${ec} -keyout server.key -out server.pem -days 2 -subj /CN=server -CA ca.pem -CAkey ca.key -addext subjectAltName=${names.join(',')}`,
	);
	const read = (name: string) => readFile(join(folder, name), 'utf8');
	const made = { ca: await read('ca.pem'), cert: await read('server.pem'), key: await read('server.key') };
	await rm(folder, { recursive: true });
	return made;
}
