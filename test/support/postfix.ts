/** Debian's Postfix with a configuration, a queue and a port of its own; needs root. */
import { execFile } from 'node:child_process';
import { chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface Postfix {
	readonly port: number;
	/** Mails that arrived for a mailbox, whole. */
	mails(mailbox: string): Promise<string[]>;
	log(): Promise<string>;
	close(): Promise<void>;
}

/**
 * `mailboxes` are the local parts that exist at example.net; everybody else there is refused at RCPT. `policy` is
 * asked for each of them, and answers as an access map does: `DUNNO`, `450 4.2.0 Later`.
 */
export interface PostfixOptions {
	mailboxes: readonly string[];
	policy: (recipient: string) => string;
}

/** Why it cannot be run here; null: it can. */
export async function postfixMissing(): Promise<string | null> {
	if (process.getuid?.() !== 0) return 'Postfix wants to be started by root';
	const found = await run('postconf', ['-d', '-h', 'daemon_directory']).catch(() => null);
	return found === null ? 'Postfix (Debian package postfix) is not installed' : null;
}

export async function startPostfix(options: PostfixOptions): Promise<Postfix> {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-postfix-'));
	// Its own user reads the configuration, and nobody's mailboxes are written below it.
	await run('chmod', ['755', folder]);
	const policy = await startPolicy(options.policy);
	const port = await freePort();
	await configure(folder, { port, policyPort: portOf(policy), mailboxes: options.mailboxes });
	await run('postfix', ['-c', join(folder, 'etc'), 'start']).catch(async (error: unknown) => {
		throw new Error(`Postfix does not start: ${await readFile(join(folder, 'log'), 'utf8')}`, {
			cause: error,
		});
	});
	return {
		port,
		mails: (mailbox) => readMails(join(folder, 'mail', mailbox, 'new')),
		log: () => readFile(join(folder, 'log'), 'utf8'),
		close: async () => {
			await run('postfix', ['-c', join(folder, 'etc'), 'stop']).catch(() => undefined);
			await new Promise((resolve) => policy.close(resolve));
			await rm(folder, { recursive: true, force: true, maxRetries: 5 });
		},
	};
}

const nobody = 65_534;

async function configure(
	folder: string,
	{ port, policyPort, mailboxes }: { port: number; policyPort: number; mailboxes: readonly string[] },
): Promise<void> {
	for (const name of ['etc', 'queue', 'data', 'mail']) await mkdir(join(folder, name), { mode: 0o755 });
	await chown(join(folder, 'mail'), nobody, nobody);
	const { stdout: owner } = await run('id', ['-u', 'postfix']);
	await chown(join(folder, 'data'), Number(owner), Number(owner));
	const known = mailboxes.map((name) => `{${name}@example.net=${name}/}`).join(' ');
	await writeFile(
		join(folder, 'etc', 'main.cf'),
		[
			'compatibility_level = 3.6',
			`queue_directory = ${folder}/queue`,
			`data_directory = ${folder}/data`,
			`maillog_file = ${folder}/log`,
			`maillog_file_prefixes = ${folder}`,
			'myhostname = mx.example.net',
			'mydestination =',
			'inet_interfaces = 127.0.0.1',
			'inet_protocols = ipv4',
			'alias_maps =',
			'virtual_mailbox_domains = example.net',
			`virtual_mailbox_maps = inline:{${known}}`,
			`virtual_mailbox_base = ${folder}/mail`,
			`virtual_uid_maps = static:${nobody}`,
			`virtual_gid_maps = static:${nobody}`,
			`smtpd_recipient_restrictions = reject_unlisted_recipient, check_policy_service inet:127.0.0.1:${policyPort}`,
			'',
		].join('\n'),
	);
	await writeFile(join(folder, 'etc', 'master.cf'), masterOf(port));
}

function masterOf(port: number): string {
	const services = [
		`127.0.0.1:${port} inet n - n - - smtpd`,
		'cleanup unix n - n - 0 cleanup',
		'qmgr unix n - n 300 1 qmgr',
		'rewrite unix - - n - - trivial-rewrite',
		'bounce unix - - n - 0 bounce',
		'defer unix - - n - 0 bounce',
		'trace unix - - n - 0 bounce',
		'error unix - - n - - error',
		'retry unix - - n - - error',
		'proxymap unix - - n - - proxymap',
		'virtual unix - n n - - virtual',
		'anvil unix - - n - 1 anvil',
		'postlog unix-dgram n - n - 1 postlogd',
	];
	return `${services.join('\n')}\n`;
}

/** Postfix's policy delegation: attributes up to an empty line, one action back. */
function startPolicy(decide: (recipient: string) => string): Promise<Server> {
	const answer = (socket: Socket) => {
		let asked = '';
		socket.setEncoding('utf8');
		socket.on('error', () => undefined);
		socket.on('data', (chunk: string) => {
			asked += chunk;
			for (let end = asked.indexOf('\n\n'); end >= 0; end = asked.indexOf('\n\n')) {
				const recipient = /^recipient=(.*)$/m.exec(asked.slice(0, end))?.[1] ?? '';
				asked = asked.slice(end + 2);
				socket.write(`action=${decide(recipient)}\n\n`);
			}
		});
	};
	return listening(createServer(answer));
}

function listening(server: Server): Promise<Server> {
	return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

async function freePort(): Promise<number> {
	const server = await listening(createServer());
	const port = portOf(server);
	await new Promise((resolve) => server.close(resolve));
	return port;
}

function portOf(server: Server): number {
	const address = server.address();
	if (address === null || typeof address === 'string') throw new Error('no port');
	return address.port;
}

async function readMails(folder: string): Promise<string[]> {
	const names = await readdir(folder).catch(() => []);
	return Promise.all(names.sort().map((name) => readFile(join(folder, name), 'utf8')));
}
