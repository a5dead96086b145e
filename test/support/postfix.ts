/** Debian's Postfix with its own configuration, queue and port; needs root. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

interface PostfixOptions {
	port: number;
	next: number;
	bounces: number;
	pipe?: string;
}

export interface MailServer {
	log(): Promise<string>;
	maildir(name: string): string;
	mails(name: string): Promise<string[]>;
	stop(): Promise<void>;
}

export const noPostfix: string | null = !existsSync('/usr/sbin/postfix')
	? 'Postfix (Debian package postfix) is not installed'
	: process.getuid?.() === 0
		? null
		: 'Postfix wants to be started by root';

export async function startPostfix(options: PostfixOptions): Promise<MailServer> {
	const folder = await mkdtemp('/tmp/mailctl-postfix-');
	const config = join(folder, 'etc');
	const log = () => readFile(join(folder, 'log'), 'utf8').catch(() => '');
	await configure(folder, options);
	const maildir = (name: string) => join(folder, 'mail', name);
	const postfix = {
		log,
		maildir,
		mails: (name: string) => mailsIn(maildir(name)),
		stop: async () => {
			await run('postfix', ['-c', config, 'stop']).catch(() => undefined);
			await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
		},
	};
	try {
		await run('postfix', ['-c', config, 'start']);
	} catch (cause) {
		const said = await log();
		await postfix.stop();
		throw new Error(`Postfix does not start: ${said}`, { cause });
	}
	return postfix;
}

const nobody = 65_534;

async function configure(folder: string, { port, next, bounces, pipe }: PostfixOptions): Promise<void> {
	await chmod(folder, 0o755);
	for (const name of ['etc', 'queue', 'data', 'mail']) await mkdir(join(folder, name), { mode: 0o755 });
	await chown(join(folder, 'mail'), nobody, nobody);
	const [user, group] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, 'postfix'])));
	await chown(join(folder, 'data'), Number(user?.stdout), Number(group?.stdout));
	const main = `
compatibility_level = 3.6
queue_directory = ${folder}/queue
data_directory = ${folder}/data
maillog_file = ${folder}/log
maillog_file_prefixes = ${folder}
myhostname = mx.example.net
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
alias_maps =
transport_maps = texthash:${folder}/etc/transport
virtual_mailbox_domains = example.net kept.example.com
virtual_mailbox_maps = inline:{{ann@example.net=ann/} {@kept.example.com=kept/}}
virtual_mailbox_base = ${folder}/mail
virtual_uid_maps = static:${nobody}
virtual_gid_maps = static:${nobody}
smtpd_recipient_restrictions =
  check_recipient_access inline:{{bob@example.net=451 4.7.1 Greylisted, come back later}}
  reject_unlisted_recipient permit_mynetworks reject_unauth_destination
`;
	await writeFile(join(folder, 'etc', 'main.cf'), main);
	const master = `
127.0.0.1:${port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
error unix - - n - - error
retry unix - - n - - error
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
${pipe === undefined ? '' : `bounces unix - n n - 1 pipe\n  flags=DROX user=nobody argv=${pipe}\n`}`;
	await writeFile(join(folder, 'etc', 'master.cf'), master);
	const transports = `example.org smtp:[127.0.0.1]:${next}
bounces.example.com ${pipe === undefined ? `smtp:[127.0.0.1]:${bounces}` : 'bounces:'}
`;
	await writeFile(join(folder, 'etc', 'transport'), transports);
}

async function mailsIn(maildir: string): Promise<string[]> {
	const folder = join(maildir, 'new');
	const names = await readdir(folder).catch(() => []);
	return Promise.all(names.map((one) => readFile(join(folder, one), 'latin1')));
}
