/** The built program, serving a database in a separate process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { programPath } from './cli.js';
import { makeProject, type Project } from './project.js';

export interface Serving {
	readonly project: Project;
	readonly process: ChildProcess;
	readonly url: string;
	readonly token: string;
	readonly tokenFile: string;
	stderr(): string;
	log(): Record<string, unknown>[];
	stop(signal?: NodeJS.Signals): Promise<number | null>;
	fetch(path: string, init?: RequestInit & { token?: string | null }): Promise<Response>;
}

export interface ServingOptions {
	project?: Project;
	smtp?: number;
	port?: number;
	args?: readonly string[];
	env?: Readonly<Record<string, string>>;
}

export async function startServing(options: ServingOptions = {}): Promise<Serving> {
	const smtp = options.smtp === undefined ? {} : { smtp: options.smtp };
	const project = options.project ?? (await makeProject(smtp));
	return { project, ...(await serveDatabase(project.db, options)) };
}

export async function serveDatabase(
	db: string,
	{ port = 0, args = [], env = {} }: Pick<ServingOptions, 'port' | 'args' | 'env'> = {},
): Promise<Omit<Serving, 'project'>> {
	const home = await mkdtemp(join(tmpdir(), 'mailctl-serving-'));
	const child = spawn(process.execPath, [programPath, 'serve', '--db', db, '--port', String(port), ...args], {
		env: { PATH: process.env['PATH'] ?? '', HOME: home, TERM: 'dumb', ...env },
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	const said = { stdout: '', stderr: '' };
	child.stdout.on('data', (chunk) => {
		said.stdout += String(chunk);
	});
	const url = await new Promise<string>((resolve, reject) => {
		child.stderr.on('data', (chunk) => {
			said.stderr += String(chunk);
			const found = /listening on (\S+)\n/.exec(said.stderr);
			if (found !== null) resolve(found[1] ?? '');
		});
		child.once('exit', (code) => reject(new Error(`serve ended with ${code}: ${said.stderr}`)));
	});
	const tokenFile = /wrote an API token with all rights to (\S+)/.exec(said.stderr)?.[1] ?? `${db}.token`;
	const token = (await readFile(tokenFile, 'utf8')).trim();
	return {
		process: child,
		url,
		token,
		tokenFile,
		stderr: () => said.stderr,
		log: () =>
			said.stdout
				.split('\n')
				.slice(0, -1)
				.map((line) => JSON.parse(line)),
		stop: async (signal = 'SIGTERM') => {
			if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
			const ended = once(child, 'exit');
			child.kill(signal);
			await ended;
			return child.exitCode;
		},
		fetch: (path, { token: given = token, ...init } = {}) =>
			fetch(`${url}${path}`, {
				redirect: 'manual',
				...init,
				headers: { ...(given !== null && { 'X-Secure-Token': given }), ...init.headers },
			}),
	};
}
