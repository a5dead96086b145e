/** Debian's PgBouncer in transaction mode with its own configuration, run as another user if the tests run as root. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isInstalled, runProgram } from './run-program.js';

export const noPgbouncer: string | null = isInstalled('pgbouncer')
	? null
	: 'PgBouncer (Debian package pgbouncer) is not installed';

interface PgbouncerOptions {
	within?: readonly string[];
	address: string;
	port: number;
	server: string;
	user: string;
	password: string;
	size?: number;
}

export async function startPgbouncer(options: PgbouncerOptions): Promise<{ stop(): Promise<void> }> {
	const { within = [], address, port, server, user, password, size = 20 } = options;
	const folder = await mkdtemp('/tmp/mailctl-pgbouncer-');
	const [host, serverPort] = server.split(':');
	const lines = [
		...['[databases]', `* = host=${host} port=${serverPort}`, '[pgbouncer]'],
		...[`listen_addr = ${address}`, `listen_port = ${port}`, 'unix_socket_dir ='],
		...['pool_mode = transaction', `default_pool_size = ${size}`, 'max_client_conn = 500'],
		...['auth_type = plain', `auth_file = ${join(folder, 'users')}`],
	];
	await writeFile(join(folder, 'users'), `"${user}" "${password}"\n`);
	await writeFile(join(folder, 'config'), `${lines.join('\n')}\n`);
	const isRoot = process.getuid?.() === 0;
	if (isRoot) await chown(folder, Number(runProgram('id', ['-u', 'postgres']).stdout), -1);
	await chmod(folder, 0o755);
	const as = isRoot ? ['runuser', '-u', 'postgres', '--'] : [];
	const [first = '', ...rest] = [...within, ...as, 'pgbouncer', join(folder, 'config')];
	const child: ChildProcess = spawn(first, rest, { stdio: ['ignore', 'ignore', 'pipe'] });
	const ended = once(child, 'exit');
	let said = '';
	const up = new Promise<void>((resolve) => {
		child.stderr?.on('data', (chunk: Buffer) => {
			said += chunk.toString();
			if (said.includes('process up')) resolve();
		});
	});
	const isUp = await Promise.race([up.then(() => true), ended.then(() => false)]);
	if (!isUp) throw new Error(`PgBouncer does not start: ${said}`);
	return {
		stop: async () => {
			child.kill('SIGTERM');
			await ended;
			await rm(folder, { recursive: true, force: true });
		},
	};
}
