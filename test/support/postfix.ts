/** Debian's Postfix with a configuration, a queue and a port of its own; needs root. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Why it cannot be run here; null: it can. */
export const noPostfix: string | null = !existsSync('/usr/sbin/postfix')
	? 'Postfix (Debian package postfix) is not installed'
	: process.getuid?.() === 0
		? null
		: 'Postfix wants to be started by root';

export interface Postfix {
	/** Its own folder: anybody may read it, `nobody` owns `mail`. */
	readonly folder: string;
	log(): Promise<string>;
	stop(): Promise<void>;
}

export interface PostfixOptions {
	/** Of 127.0.0.1. */
	port: number;
	/** Where mail for a domain goes, as a transport table has it. */
	transports?: Readonly<Record<string, string>>;
	/** Further lines of main.cf, of a folder that is known only then. */
	settings?: (folder: string) => readonly string[];
	services?: readonly string[];
}

export async function startPostfix(options: PostfixOptions): Promise<Postfix> {
	// Not below the folder of the tests: its users are to reach it.
	const folder = await mkdtemp('/tmp/mailctl-postfix-');
	const config = join(folder, 'etc');
	const log = () => readFile(join(folder, 'log'), 'utf8').catch(() => '');
	await configure(folder, options);
	const postfix = {
		folder,
		log,
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

async function configure(folder: string, options: PostfixOptions): Promise<void> {
	await chmod(folder, 0o755);
	for (const name of ['etc', 'queue', 'data', 'mail']) await mkdir(join(folder, name), { mode: 0o755 });
	await chown(join(folder, 'mail'), nobody, nobody);
	const [user, group] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, 'postfix'])));
	await chown(join(folder, 'data'), Number(user?.stdout), Number(group?.stdout));
	const { transports = {}, settings, services = [], port } = options;
	const table = Object.entries(transports).map(([domain, where]) => `${domain} ${where}`);
	await writeFile(join(folder, 'etc', 'transport'), `${table.join('\n')}\n`);
	const main = [
		'compatibility_level = 3.6',
		`queue_directory = ${folder}/queue`,
		`data_directory = ${folder}/data`,
		`maillog_file = ${folder}/log`,
		`maillog_file_prefixes = ${folder}`,
		'myhostname = mx.example.net',
		'mydestination =',
		'mynetworks = 127.0.0.0/8',
		'inet_interfaces = 127.0.0.1',
		'inet_protocols = ipv4',
		'alias_maps =',
		`transport_maps = texthash:${folder}/etc/transport`,
		...(settings?.(folder) ?? []),
	];
	await writeFile(join(folder, 'etc', 'main.cf'), `${main.join('\n')}\n`);
	const master = [`127.0.0.1:${port} inet n - n - - smtpd`, ...usualServices, ...services];
	await writeFile(join(folder, 'etc', 'master.cf'), `${master.join('\n')}\n`);
}

const usualServices = [
	'cleanup unix n - n - 0 cleanup',
	'qmgr unix n - n 300 1 qmgr',
	'rewrite unix - - n - - trivial-rewrite',
	'bounce unix - - n - 0 bounce',
	'defer unix - - n - 0 bounce',
	'trace unix - - n - 0 bounce',
	'error unix - - n - - error',
	'retry unix - - n - - error',
	'proxymap unix - - n - - proxymap',
	'smtp unix - - n - - smtp',
	'virtual unix - n n - - virtual',
	'anvil unix - - n - 1 anvil',
	'postlog unix-dgram n - n - 1 postlogd',
];
