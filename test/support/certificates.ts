/** Creates a certificate authority and a server certificate with openssl, for one test run. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface Certificates {
	ca: string;
	cert: string;
	key: string;
}

export function makeCertificates(names: readonly string[]): Promise<Certificates> {
	return make(
		`req -x509 ${ec} -keyout server.key -out server.pem -days 2 -subj /CN=server -CA ca.pem -CAkey ca.key -addext subjectAltName=${names.join(',')}`,
	);
}

export function makeExpiredCertificates(names: readonly string[]): Promise<Certificates> {
	return make(
		`req ${ec} -keyout server.key -out server.csr -subj /CN=server -addext subjectAltName=${names.join(',')}`,
		'ca -batch -config ca.cnf -in server.csr -out server.pem -cert ca.pem -keyfile ca.key -notext -startdate 20200101000000Z -enddate 20200103000000Z',
	);
}

const ec = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';

const authority = [
	...['[ca]', 'default_ca = own', '[own]', 'database = index', 'serial = serial', 'new_certs_dir = .'],
	...['default_md = sha256', 'policy = any', 'copy_extensions = copy', '[any]', 'commonName = supplied', ''],
].join('\n');

async function make(...lines: readonly string[]): Promise<Certificates> {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-certificates-'));
	for (const [name, text] of Object.entries({ 'ca.cnf': authority, index: '', serial: '01\n' }))
		await writeFile(join(folder, name), text);
	for (const line of [
		`req -x509 ${ec} -keyout ca.key -out ca.pem -days 2 -subj /CN=Test-Authority`,
		...lines,
	])
		await promisify(execFile)('openssl', line.split(' '), { cwd: folder });
	const read = (name: string) => readFile(join(folder, name), 'utf8');
	const made = { ca: await read('ca.pem'), cert: await read('server.pem'), key: await read('server.key') };
	await rm(folder, { recursive: true });
	return made;
}
