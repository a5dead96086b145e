import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chown, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { loadNode } from '../../src/cli/frame/command.js';
import { globalOptions } from '../../src/cli/frame/globals.js';
import { parse as parseCommand } from '../../src/cli/frame/input.js';
import { tree } from '../../src/cli/tree.js';
import { readPlace } from '../../src/store/postgres/place.js';
import { cli, isBuilt, makeHome, startProgram } from '../support/cli.js';
import { startCountingSink } from '../support/counting-sink.js';
import { eventually } from '../support/eventually.js';
import { checkBalancer, noBalancer, startBalancer } from '../support/load-balancer.js';
import { noPgbouncer } from '../support/pgbouncer.js';
import { ask, canRunPostgres, startOwn } from '../support/postgres.js';
import { runProgram } from '../support/run-program.js';

const files = join(import.meta.dirname, '../../packaging/cluster');
const read = (name: string) => readFile(join(files, name), 'utf8');
const people = 500;

const net = `127.${randomInt(2, 250)}.${randomInt(0, 250)}`;
const addresses = { database: `${net}.1`, replica: `${net}.2`, pgbouncer: `${net}.3`, proxy: `${net}.4` };
const serves = { 'serve-1': `${net}.5`, 'serve-2': `${net}.6` };

/** Replaces the host names of the files by addresses of this machine. */
function settled(text: string): string {
	let here = text;
	for (const [name, address] of Object.entries({ ...addresses, ...serves }))
		here = here.replaceAll(`${name}:`, `${address}:`).replaceAll(`host=${name} `, `host=${address} `);
	return here;
}

const place = {
	addresses: { 'serve-1:8080': settled('serve-1:8080'), 'serve-2:8080': settled('serve-2:8080') },
	at: `${addresses.proxy}:8080`,
};

describe.each(['haproxy', 'nginx'] as const)('the configuration of %s', (name) => {
	const missing = noBalancer(name);
	it.skipIf(missing !== null)(`is valid${missing === null ? '' : ` (skipped: ${missing})`}`, async () => {
		expect(await checkBalancer(name, place)).toBeNull();
	});
});

/** Returns the JSON arrays that follow `word:`, one for each line with it. */
function lists(text: string, word: string): string[][] {
	return [...text.matchAll(new RegExp(`^\\s*${word}: (\\[.*\\])$`, 'gm'))].map(([, json = '']) =>
		JSON.parse(json),
	);
}

interface Service {
	image: string;
	command: string[];
	environment: Record<string, string>;
	healthcheck?: { test: string[]; start_period?: string };
	tmpfs?: string[];
}
interface Compose {
	services: Record<string, Service>;
}

const missing =
	noBalancer('haproxy') ??
	noPgbouncer ??
	(process.getuid?.() !== 0
		? 'only root starts PostgreSQL and PgBouncer as another user'
		: canRunPostgres()
			? null
			: 'PostgreSQL is not installed');

describe('the cluster', () => {
	it('has each file that compose.yaml mounts, except users.txt', async () => {
		const mounted = [...(await read('compose.yaml')).matchAll(/"\.\/([\w.-]+):/g)].map(
			([, name = '']) => name,
		);
		for (const name of mounted.filter((one) => one !== 'users.txt'))
			expect([name, (await read(name)).length > 0]).toEqual([name, true]);
	});

	it('gives each mailctl service a command, and only environment variables that mailctl reads', async () => {
		const { services } = parseYaml(await read('compose.yaml'), { merge: true }) as Compose; // the test checks only the services of mailctl
		const ours = Object.entries(services).filter(([, { image }]) => image === 'mailctl');
		expect(ours.map(([name]) => name)).toEqual(['serve-1', 'serve-2', 'worker-1', 'worker-2']);
		const known = Object.values(globalOptions).flatMap(({ env = '' }) => env.split(', '));
		for (const [name, { command, environment }] of ours) {
			const entry = tree.find((one) => one.name === command[0]);
			if (entry === undefined) throw new Error(`${name}: ${command[0]} is no command`);
			expect(parseCommand(await loadNode(entry), command)).toMatchObject({ kind: 'run' });
			// Not mailctl but PostgreSQL's driver reads PGPASSWORD.
			expect(Object.keys(environment).filter((one) => !['PGPASSWORD', ...known].includes(one))).toEqual([]);
			expect(readPlace(environment['MAILCTL_DB'] ?? '').listen).toBe('database:5432');
		}
	});

	it.skipIf(missing !== null || !isBuilt)(
		`sends a campaign from its files${missing === null ? '' : ` (skipped: ${missing})`}`,
		async () => {
			const compose = await read('compose.yaml');
			const [serve = [], worker = [], postgres = []] = lists(compose, 'command');
			expect([serve[0], worker[0], postgres[0]]).toEqual(['serve', 'worker', 'postgres']);
			const settings = Object.fromEntries(
				postgres.filter((word) => word.includes('=')).map((word) => word.split('=') as [string, string]),
			);
			const database = await startOwn({ address: addresses.database, settings });
			onTestFinished(() => database.stop());
			const folder = decodeURIComponent(database.host);
			const roles = runProgram('bash', [join(files, 'roles.sh')], {
				env: {
					...{ PATH: process.env['PATH'], PGHOST: folder, PGDATA: join(folder, 'data') },
					...{ MAILCTL_PASSWORD: "ge'heim", REPLICATION_PASSWORD: 'folgt' },
				},
			});
			expect([roles.status, roles.stderr]).toEqual([0, '']);
			const admin = `postgres://postgres@${database.host}/mail`;
			await ask(admin, 'SELECT pg_reload_conf()');

			const copy = await mkdtemp('/tmp/mailctl-replica-');
			const user = Number(runProgram('id', ['-u', 'postgres']).stdout);
			await chown(copy, user, -1);
			const bin = String(
				(await ask(admin, "SELECT setting FROM pg_config WHERE name = 'BINDIR'"))[0]?.['setting'],
			);
			const start = (words: readonly string[], env: Readonly<Record<string, string>>) => {
				const [first = '', ...rest] = words;
				const child = spawn(first, rest, {
					cwd: '/tmp',
					env: { PATH: `${bin}:${process.env['PATH']}`, ...env },
					stdio: 'ignore',
				});
				const end = once(child, 'exit');
				onTestFinished(async () => {
					child.kill('SIGINT');
					await end;
				});
			};
			start(
				['setpriv', `--reuid=${user}`, '--clear-groups', 'bash', join(files, 'replica.sh')].concat(
					...['-c', `listen_addresses=${addresses.replica}`, '-k', copy],
				),
				{ PGDATA: join(copy, 'data'), PGPASSWORD: 'folgt', PRIMARY: addresses.database },
			);
			await eventually(async () =>
				expect(await ask(admin, 'SELECT state FROM pg_stat_replication')).toEqual([{ state: 'streaming' }]),
			);

			const pooler = await mkdtemp('/tmp/mailctl-pgbouncer-');
			await chown(pooler, user, -1);
			const ini = settled(await read('pgbouncer.ini'))
				.replace('listen_addr = *', `listen_addr = ${addresses.pgbouncer}`)
				.replace('/etc/pgbouncer', pooler);
			await writeFile(join(pooler, 'pgbouncer.ini'), ini, { mode: 0o644 });
			await writeFile(join(pooler, 'users.txt'), `"mailctl" "ge'heim"\n`, { mode: 0o644 });
			start(['setpriv', `--reuid=${user}`, '--clear-groups', 'pgbouncer', join(pooler, 'pgbouncer.ini')], {});

			const [, url = ''] = /MAILCTL_DB: "(.*)"/.exec(compose) ?? [];
			const env = { HOME: await makeHome(), MAILCTL_DB: settled(url), PGPASSWORD: "ge'heim" };
			// The driver reads PGPASSWORD of this process only, so calls inside the test need the password in the URL.
			const here = { ...env, MAILCTL_DB: env.MAILCTL_DB.replace('mailctl@', 'mailctl:ge%27heim@') };
			const sink = await startCountingSink();
			onTestFinished(sink.close);
			const run = async (
				words: readonly string[],
				more: Readonly<Record<string, string>> = here,
				stdin = '',
			) => {
				const { code, stdout, stderr } = await cli(words, { env: more, stdin });
				expect([words, code, code === 0 ? '' : stderr]).toEqual([words, 0, '']);
				return stdout.trim();
			};
			await eventually(() =>
				run(['engine', 'init', '--smtp', `smtp://127.0.0.1:${sink.port}`, '--sender', 'news@example.com']),
			);
			const token = await run(['engine', 'tokens', 'create', '--name', 'shop', '--scope', 'admin', '-q']);
			const children = [
				...Object.values(serves).map((address) =>
					startProgram(
						serve.map((word) => (word === '0.0.0.0' ? address : word)),
						env,
					),
				),
				...[1, 2].map(() => startProgram(worker, env)),
			];
			const ends = children.map((child) => once(child, 'exit'));
			onTestFinished(() => {
				for (const child of children) child.kill('SIGKILL');
			});
			for (const child of children) for (const stream of [child.stdout, child.stderr]) stream.resume();
			const balancer = await startBalancer('haproxy', place);
			onTestFinished(balancer.stop);

			const client = { HOME: await makeHome(), MAILCTL_BASE_URL: `http://${place.at}`, MAILCTL_TOKEN: token };
			await eventually(() => run(['lists', 'create', '--name', 'News', '--email-reason', 'x'], client));
			const rows = Array.from({ length: people }, (_, n) => `p${n}@example.org\n`).join('');
			await run(
				['subscribers', 'import', '-', '--list', 'News', '--rejects', join(pooler, 'rejects.csv')],
				client,
				`email\n${rows}`,
			);
			await run(
				['send', '--list', 'News', '--from', 'news@example.com', '--subject', 'Hi', '--text', 'Hello'].concat(
					...['--yes', '--expect-count', String(people), '--no-wait'],
				),
				client,
			);
			await eventually(() => expect(sink.received()).toBe(people));
			await eventually(async () =>
				expect(await run(['report', '-o', 'json'], client)).toContain(`"sent": ${people}`),
			);
			for (const child of children) child.kill('SIGTERM');
			expect((await Promise.all(ends)).map(([code]) => code)).toEqual([0, 0, 0, 0]);
		},
	);
});
