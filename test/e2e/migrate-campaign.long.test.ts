import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { microsPerSecond, systemClock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';
import { isBuilt, makeHome, startProgram } from '../support/cli.js';
import { startCountingSink } from '../support/counting-sink.js';
import { eventually } from '../support/eventually.js';
import { asked, ended } from '../support/fault-points.js';
import { memoryOf } from '../support/memory.js';
import { describePostgres } from '../support/postgres.js';

const people = asked('MAILCTL_MOVED', 3_000);
const opened = 500;
const patienceMs = 120_000 + 5 * people;

const exports = [
	['lists', 'list', '-o', 'json'],
	['subscribers', 'export', '-l', '1'],
	['messages', 'list', '--all', '-o', 'ndjson'],
	['campaigns', 'list', '-o', 'json'],
	['campaigns', 'report', 'big', '--human', '-o', 'json'],
	['campaigns', 'results', 'big', '-o', 'csv'],
	['campaigns', 'links', 'big', '-o', 'json'],
	['report', '-o', 'json'],
	['suppressions', 'export'],
	['engine', 'queue', 'stats', '-o', 'json'],
];

describePostgres('a half-sent campaign', (server) => {
	it.skipIf(!isBuilt)(
		`that is moved to PostgreSQL ends there, and each of ${people} people gets one mail`,
		async () => {
			const home = await makeHome();
			const file = join(home, 'news.db');
			const received = new Map<string, number>();
			const sink = await startCountingSink((to) => received.set(to, (received.get(to) ?? 0) + 1));
			onTestFinished(() => sink.close());
			const start = (db: string, words: readonly string[]) =>
				startProgram(['--db', db, ...words], { HOME: home });
			const run = async (db: string, ...words: string[]) => {
				const { code, stdout, stderr } = await ended(start(db, words));
				expect({ words, code, stderr: code === 0 ? '' : stderr }).toEqual({ words, code: 0, stderr: '' });
				return stdout;
			};
			/** Returns the SHA-256 of each export. */
			const exported = async (db: string) => {
				const sums: Record<string, string> = {};
				for (const words of exports) {
					const child = start(db, words);
					const hash = createHash('sha256');
					for await (const chunk of child.stdout) hash.update(chunk);
					expect(await endOf(child)).toBe(0);
					sums[words.join(' ')] = hash.digest('hex');
				}
				return sums;
			};
			const table = join(home, 'people.csv');
			const lines = Array.from({ length: people }, (_, n) => `p${n}@example.org,P ${n}\n`);
			writeFileSync(table, `email,name\n${lines.join('')}`);
			const smtp = ['--smtp', `smtp://127.0.0.1:${sink.port}`, '--sender', 'news@example.com'];
			await run(file, 'engine', 'init', ...smtp);
			await run(file, 'engine', 'settings', 'set', 'public_url', 'https://mail.example.com');
			await run(file, 'lists', 'create', '--name', 'News', '--email-reason', 'x');
			await run(file, 'subscribers', 'import', table, '--list', 'News');
			await run(file, 'suppressions', 'add', 'p1@example.org', 'p2@example.org', 'gone@example.org');
			const html =
				'<p>Hello #name#, <a href="https://example.com/1">read</a> <a href="#unsubscribe_url#">no</a></p>';
			writeFileSync(join(home, 'news.html'), html);
			const sender = start(file, [
				...['send', '--list', 'News', '--from', 'news@example.com', '--subject', 'Hi', '--campaign', 'big'],
				...['--html-file', join(home, 'news.html'), '--yes', '--expect-count', String(people - 2)],
			]);
			const stopped = ended(sender);
			const half = eventually(() => {
				expect(sink.received()).toBeGreaterThan(people * 0.5);
			}, patienceMs);
			const early = await Promise.race([stopped, half]);
			expect(early).toBeUndefined();
			sender.kill('SIGTERM');
			await stopped;
			expect(sink.received()).toBeLessThan(people - 2);
			await open(file);

			const url = await server.createDatabase();
			const move = async (from: string, to: string) => {
				const began = performance.now();
				const child = startProgram(['engine', 'migrate', '--from', from, '--to', to, '--yes', '-o', 'json'], {
					HOME: home,
				});
				let most = 0;
				const look = setInterval(() => {
					most = Math.max(most, memoryOf(child.pid).peakMb);
				}, 100);
				const { code, stdout, stderr } = await ended(child);
				clearInterval(look);
				expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
				const { tables } = JSON.parse(stdout) as { tables: { rows: number }[] };
				const rows = tables.reduce((sum, one) => sum + one.rows, 0);
				const seconds = (performance.now() - began) / 1_000;
				return `${rows} rows in ${seconds.toFixed(1)} s, ${Math.round(most)} MiB`;
			};
			const sent = sink.received();
			const before = await exported(file);
			const there = await move(file, url);
			expect(await exported(url)).toEqual(before);
			await run(url, 'worker', '--drain');
			const after = await exported(url);
			expect(after).not.toEqual(before);
			const back = join(home, 'back.db');
			const again = await move(url, back);
			expect(await exported(back)).toEqual(after);
			await run(back, 'engine', 'check');
			process.stderr.write(
				`${sent} sent, then ${there} there; ${sink.received()} sent, then ${again} back\n`,
			);
			expect(received.size).toBe(people - 2);
			expect(sink.received()).toBe(people - 2);
		},
		patienceMs * 4,
	);
});

function endOf(child: ReturnType<typeof startProgram>): Promise<number | null> {
	return child.exitCode !== null
		? Promise.resolve(child.exitCode)
		: new Promise((resolve) => child.once('exit', resolve));
}

async function open(file: string): Promise<void> {
	const store = await openStore(file, { clock: systemClock, mode: 'existing' });
	const { results } = await store.reads.pageMessages({
		...{ page: 1, page_size: opened, filter: { status: 'sent' } },
	});
	const at = systemClock.now() + microsPerSecond;
	const none = { link: null, ip: null, user_agent: null, url: null, smtp_code: null, diagnostic: null };
	await store.writes.recordEvents({
		events: results.map(({ id }, n) => ({
			...{ ...none, message: id, type: 'OPENED' as const, at: at + n, machine: n % 3 === 0 },
		})),
	});
	await store.close();
}
