/**
 * Two machines run `serve --no-worker` and `worker`; the database and the mail server are on two more. One machine is
 * cut off during a campaign. The mail server must get every message, and no more of them twice than after a crash.
 * `MAILCTL_MESSAGES` and `MAILCTL_CUT` (seconds) set another size.
 */
import type { ChildProcess } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cli, isBuilt, makeHome, programPath } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { asked, type Ended, ended } from '../support/fault-points.js';
import { type Machine, makeMachines, noMachines } from '../support/machines.js';
import { noPgbouncer, startPgbouncer } from '../support/pgbouncer.js';
import { ask, canRunPostgres, startOwn } from '../support/postgres.js';

const messages = asked('MAILCTL_MESSAGES', 2_000);
const cutMs = 1_000 * asked('MAILCTL_CUT', 5);
const patienceMs = 120_000 + 3 * cutMs + 10 * messages;
/** How many messages a cut may repeat: 100 unrecorded outcomes and 5 messages in flight. */
const window = 105;
const password = 'geheim';

const missing = noMachines ?? (canRunPostgres() ? null : 'PostgreSQL is not installed');

function startSink(machine: Machine) {
	const words = ['sink', '--host', '0.0.0.0', '--port', '2525', '-o', 'ndjson', '--fields', 'message_id'];
	const child = machine.start(process.execPath, [programPath, ...words], { env: { HOME: '/nonexistent' } });
	onTestFinished(() => void child.kill('SIGKILL'));
	const end = ended(child);
	return {
		listens: says(child, /listening on/),
		stop: async () => {
			child.kill('SIGTERM');
			const { stdout } = await end;
			return stdout
				.trimEnd()
				.split('\n')
				.map((line) => String(JSON.parse(line).message_id));
		},
	};
}

function says(child: ChildProcess, words: RegExp): Promise<void> {
	let said = '';
	return new Promise((resolve, reject) => {
		child.stderr?.on('data', (chunk: Buffer) => {
			said += chunk.toString();
			if (words.test(said)) resolve();
		});
		child.once('exit', (code) => reject(new Error(`ended with ${code}: ${said}`)));
	});
}

const pooled = { way: 'through PgBouncer in transaction mode', isPooled: true };
const ways = [{ way: 'to the server itself', isPooled: false }, ...(noPgbouncer === null ? [pooled] : [])];

if (noPgbouncer !== null) describe.skip(noPgbouncer, () => it('PgBouncer is missing', () => {}));

describe.skipIf(missing !== null || !isBuilt)(`several machines (${missing ?? 'network namespaces'})`, () => {
	it.each(ways)(
		`send one mail to each of ${messages} people, with one cut off for ${cutMs / 1_000} s (database: $way)`,
		async ({ isPooled }) => {
			const { machines, close } = makeMachines('database', 'one', 'two', 'mail');
			onTestFinished(close);
			const { database, one, two, mail } = machines;
			const server = await startOwn({ within: database.within, address: database.address });
			onTestFinished(() => server.stop());
			const admin = await server.createDatabase();
			const name = new URL(admin).pathname.slice(1);
			await ask(
				admin,
				`CREATE ROLE mailctl LOGIN PASSWORD '${password}'`,
				`ALTER DATABASE ${name} OWNER TO mailctl`,
			);
			const direct = `${database.address}:5432`;
			if (isPooled) {
				const where = { within: database.within, address: database.address, port: 6432 };
				const pooler = await startPgbouncer({ ...where, server: direct, user: 'mailctl', password });
				onTestFinished(pooler.stop);
			}
			const place = isPooled ? `${database.address}:6432` : direct;
			const db = `postgres://mailctl:${password}@${place}/${name}${isPooled ? `?listen=${direct}` : ''}`;

			const sink = startSink(mail);
			await sink.listens;
			const home = await makeHome();
			const here = new URL(admin);
			here.username = 'mailctl';
			const run = async (argv: readonly string[], stdin = '') => {
				const said = await cli(['--db', here.href, ...argv], { env: { HOME: home }, stdin });
				expect({ argv, code: said.code, stderr: said.code === 0 ? '' : said.stderr }).toEqual({
					...{ argv, code: 0, stderr: '' },
				});
				return said.stdout;
			};
			const people = join(home, 'people.csv');
			const lines = Array.from({ length: messages }, (_, n) => `p${n}@example.org\n`);
			await writeFile(people, `email\n${lines.join('')}`);
			await run(['engine', 'init', '--smtp', `smtp://${mail.address}:2525`, '--sender', 'news@example.com']);
			await run(['engine', 'settings', 'set', 'public_url', 'https://mail.example.com']);
			await run(['lists', 'create', '--name', 'News', '--email-reason', 'x']);
			await run(['subscribers', 'import', people, '--list', 'News']);
			const token = await run(['engine', 'tokens', 'create', '--name', 'shop', '--scope', 'admin', '-q']);

			const start = (machine: Machine, ...words: string[]) => {
				const env = { HOME: home, MAILCTL_DB: db };
				const child = machine.start(process.execPath, [programPath, ...words], { env });
				onTestFinished(() => void child.kill('SIGKILL'));
				return { child, end: ended(child) };
			};
			const serve = (machine: Machine) =>
				start(machine, 'serve', '--no-worker', '--host', machine.address, '--port', '8080');
			const servers = [serve(one), serve(two)];
			const workers = [start(one, 'worker', '-o', 'json'), start(two, 'worker', '-o', 'json')];
			await Promise.all(servers.map(({ child }) => says(child, /listening on/)));
			const ask_ = (machine: Machine, ...words: string[]): Promise<Ended> => {
				const env = { HOME: home, MAILCTL_TOKEN: token.trim() };
				const target = ['--base-url', `http://${machine.address}:8080`];
				return ended(mail.start(process.execPath, [programPath, ...target, ...words], { env }));
			};
			const states = async (): Promise<Record<string, number>> => {
				const rows = await ask(admin, 'SELECT state, count(*)::int AS n FROM messages GROUP BY 1');
				return Object.fromEntries(rows.map(({ state, n }) => [String(state), Number(n)]));
			};
			const began = performance.now();
			const campaign = ['--subject', 'Hi', '--text', 'Hello #unsubscribe_url#', '--campaign', 'big'];
			const sent = await ask_(
				...([two, 'send', '--list', 'News', '--from', 'news@example.com', ...campaign] as const),
				...['--yes', '--expect-count', String(messages), '--no-wait'],
			);
			expect([sent.code, sent.code === 0 ? '' : sent.stderr]).toEqual([0, '']);

			await eventually(async () => {
				expect((await states())['sent']).toBeGreaterThan(messages * 0.2);
				const held = `SELECT 1 FROM messages WHERE state = 'leased' AND lease_owner LIKE '%:${workers[0]?.child.pid}:%'`;
				expect(await ask(admin, `${held} LIMIT 1`)).toHaveLength(1);
				one.cut();
			}, patienceMs);
			const before = await states();
			const isOver = delay(cutMs);
			expect((await ask_(two, 'lists', 'list', '-o', 'name')).stdout).toBe('News\n');
			await isOver;
			const during = await states();
			one.join();
			const settled = () =>
				eventually(async () => {
					const { sent: done = 0, uncertain = 0 } = await states();
					expect(done + uncertain).toBe(messages);
					return uncertain;
				}, patienceMs);
			const uncertain = await settled();
			if (uncertain > 0) {
				const ids = await run(['messages', 'list', '--status', 'uncertain', '--all', '-o', 'name']);
				await run(['messages', 'retry', '-'], ids);
				await eventually(async () => expect(await states()).toEqual({ sent: messages }), patienceMs);
			}
			const seconds = (performance.now() - began) / 1_000;
			await eventually(async () =>
				expect((await ask_(one, 'lists', 'list', '-o', 'name')).stdout).toBe('News\n'),
			);
			for (const { child } of [...workers, ...servers]) child.kill('SIGTERM');
			const ends = await Promise.all([...workers, ...servers].map(({ end }) => end));
			expect(ends.map(({ code, stderr }) => [code, code === 0 ? '' : stderr])).toEqual(
				ends.map(() => [0, '']),
			);
			const byWorker = ends.slice(0, 2).map(({ stdout }) => Number(JSON.parse(stdout).sent));
			const arrived = await sink.stop();
			const repeated = arrived.length - new Set(arrived).size;
			process.stderr.write(
				`${messages} messages, ${new Set(arrived).size} Message-IDs, ${repeated} repeated, ${uncertain} uncertain, ` +
					`${before['sent']} sent before the cut and ${during['sent']} at its end, ${byWorker.join(' and ')} by the workers, ` +
					`${seconds.toFixed(0)} s\n`,
			);
			expect(new Set(arrived).size).toBe(messages);
			expect(repeated).toBeLessThanOrEqual(window + uncertain);
			expect(uncertain).toBeLessThanOrEqual(5);
			expect(Math.min(...byWorker)).toBeGreaterThan(0);
			await run(['engine', 'check']);
		},
		patienceMs * 3,
	);
});
