/** A mail server that is not ours, running in a root folder of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { eventually } from './eventually.js';

export interface MailServerOptions {
	port: number;
	next: number;
	bounces: number;
}

export interface MailServer {
	log(): Promise<string>;
	maildir(name: string): string;
	mails(name: string): Promise<string[]>;
	stop(): Promise<void>;
}

interface ServerCommand {
	root: string;
	argv: readonly string[];
	port: number;
	logFile?: string;
}

export async function startMailServer({ root, argv, port, logFile }: ServerCommand): Promise<MailServer> {
	const child = spawn('chroot', [root, ...argv], { stdio: ['ignore', 'pipe', 'pipe'] });
	const ended = once(child, 'close');
	let said = '';
	for (const stream of [child.stdout, child.stderr])
		stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
	const file = () => readFile(join(root, logFile ?? ''), 'utf8').catch(() => '');
	const maildir = (name: string) => join(root, 'mail', name);
	const server: MailServer = {
		log: async () => said + (await file()),
		maildir,
		mails: (name) => mailsIn(maildir(name)),
		stop: async () => {
			child.kill('SIGTERM');
			await ended;
			await rm(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
		},
	};
	const isUp = await Promise.race([ended.then(() => false), listening(port)]);
	if (isUp) return server;
	const log = await server.log();
	await server.stop();
	throw new Error(`${argv[0]} does not start: ${log}`);
}

export async function mailsIn(maildir: string): Promise<string[]> {
	const folder = join(maildir, 'new');
	const names = await readdir(folder).catch(() => []);
	return Promise.all(names.map((one) => readFile(join(folder, one), 'latin1')));
}

function listening(port: number): Promise<boolean> {
	const connected = async () => {
		const socket = connect(port, '127.0.0.1');
		await once(socket, 'connect');
		socket.destroy();
		return true;
	};
	return eventually(connected).catch(() => false);
}
