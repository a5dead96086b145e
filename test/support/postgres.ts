/**
 * A PostgreSQL server for tests: the one in MAILCTL_TEST_POSTGRES, or Debian's in a new folder, run as another user if
 * the tests run as root.
 */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { chmod, chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, describe } from 'vitest';

const run = promisify(execFile);
const debian = '/usr/lib/postgresql';

function programs(): string | null {
	if (!existsSync(debian)) return null;
	const versions = readdirSync(debian).sort((one, other) => Number(other) - Number(one));
	const folders = versions.map((version) => join(debian, version, 'bin'));
	return folders.find((folder) => existsSync(join(folder, 'initdb'))) ?? null;
}

const named = process.env['MAILCTL_TEST_POSTGRES'];

const noPostgres: string | null =
	named !== undefined || programs() !== null
		? null
		: 'PostgreSQL (Debian package postgresql) is not installed';

export interface Postgres {
	createDatabase(): Promise<string>;
	stop(): Promise<void>;
}

interface PostgresOfSuite extends Pick<Postgres, 'createDatabase'> {
	createProject(): Promise<string>;
}

export function describePostgres(name: string, suite: (server: PostgresOfSuite) => void): void {
	const title = noPostgres === null ? name : `${name} (skipped: ${noPostgres})`;
	describe.skipIf(noPostgres !== null)(title, () => {
		let server: Postgres | null = null;
		let shared: Promise<string> | null = null;
		let projects = 0;
		beforeAll(async () => {
			server = await startPostgres();
		});
		afterAll(() => server?.stop());
		const createDatabase = () => {
			if (server === null) throw new Error('the server runs while tests do');
			return server.createDatabase();
		};
		suite({
			createDatabase,
			createProject: async () => {
				shared ??= createDatabase();
				const project = new URL(await shared);
				projects += 1;
				project.searchParams.set('schema', `p${projects}`);
				return project.href;
			},
		});
	});
}

export async function ask(url: string, ...texts: string[]): Promise<Record<string, unknown>[]> {
	const client = new pg.Client({ connectionString: url });
	await client.connect();
	try {
		let rows: Record<string, unknown>[] = [];
		for (const text of texts) ({ rows } = await client.query(text));
		return rows;
	} finally {
		await client.end();
	}
}

export async function copyDatabase(url: string): Promise<string> {
	const server = new URL(url);
	server.pathname = '/postgres';
	return await makeDatabase(server.href, new URL(url).pathname.slice(1));
}

async function startPostgres(): Promise<Postgres> {
	return named === undefined ? await startOwn() : serverAt(named, async () => undefined);
}

export interface OwnPostgres extends Postgres {
	host: string;
	kill(): Promise<void>;
	restart(): Promise<void>;
	createDatabaseIn(folder: string): Promise<string>;
	replicate(own?: Pick<ServerOptions, 'within' | 'address'>): Promise<OwnPostgres>;
	promote(): Promise<void>;
}

export function canRunPostgres(): boolean {
	return programs() !== null;
}

export interface ServerOptions {
	source?: string;
	within?: readonly string[];
	address?: string;
	settings?: Readonly<Record<string, string | number>>;
	folder?: string;
}

const admission = ['local all guarded scram-sha-256', 'local all all trust', 'local replication all trust']
	.concat('host all all all scram-sha-256', '')
	.join('\n');

const usualSettings = { fsync: 'off', max_connections: 200 };

export async function startOwn(options: ServerOptions = {}): Promise<OwnPostgres> {
	const { source, within = [], address = '' } = options;
	const bin = programs();
	if (bin === null) throw new Error(String(noPostgres));
	const folder = options.folder ?? (await mkdtemp('/tmp/mailctl-postgres-'));
	const data = join(folder, 'data');
	const as = (program: string, ...words: string[]) => {
		const user = process.getuid?.() === 0 ? ['runuser', '-u', 'postgres', '--'] : [];
		const [first = '', ...rest] = [...within, ...user, join(bin, program), ...words];
		return run(first, rest, { cwd: folder });
	};
	const give = async (place: string) => {
		if (process.getuid?.() !== 0) return;
		const { stdout } = await run('id', ['-u', 'postgres']);
		await chown(place, Number(stdout), -1);
	};
	await give(folder);
	await chmod(folder, 0o700);
	if (source === undefined) {
		await as(
			'initdb',
			...['-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale', 'C.UTF-8'],
		);
		await writeFile(join(data, 'pg_hba.conf'), admission);
	} else
		await as(
			'pg_basebackup',
			...['-h', source, '-U', 'postgres', '-D', data, '-R', '--checkpoint=fast', '--no-sync'],
		);
	const control = (...words: string[]) => as('pg_ctl', '-D', data, '-w', ...words);
	const settings = Object.entries({ ...usualSettings, ...options.settings });
	const said = settings.map(([name, value]) => `-c ${name}=${value}`).join(' ');
	const words = `${said} -c listen_addresses='${address}' -k ${folder}`;
	const start = () => control('-o', words, '-l', join(folder, 'log'), 'start');
	await start();
	const host = encodeURIComponent(folder);
	const stop = async () => {
		await control('-m', 'immediate', 'stop').catch(() => undefined);
		await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
	};
	const url = `postgres://postgres@${host}/postgres`;
	return {
		...serverAt(url, stop),
		host,
		kill: async () => {
			const [pid] = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n');
			process.kill(Number(pid), 'SIGKILL');
		},
		restart: async () => {
			for (let tries = 1; ; tries += 1) {
				const error = await start().then(
					() => null,
					(failure: unknown) => failure,
				);
				if (error === null) return;
				if (tries === 50) throw error;
				await delay(100);
			}
		},
		createDatabaseIn: async (place) => {
			await give(place);
			const tablespace = `of_${made}`;
			await ask(url, `CREATE TABLESPACE ${tablespace} LOCATION '${place}'`);
			return makeDatabase(url, 'template1', `TABLESPACE ${tablespace}`);
		},
		replicate: (own) => startOwn({ ...own, source: folder }),
		promote: async () => {
			await control('promote');
		},
	};
}

let made = 0;

function serverAt(url: string, stop: () => Promise<void>): Postgres {
	return { createDatabase: () => makeDatabase(url, 'template1'), stop };
}

async function makeDatabase(url: string, template: string, more = ''): Promise<string> {
	made += 1;
	const name = `mailctl_test_${process.pid}_${made}`;
	await ask(url, `CREATE DATABASE ${name} TEMPLATE ${template} ${more}`);
	const own = new URL(url);
	own.pathname = `/${name}`;
	return own.href;
}
