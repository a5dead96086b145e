/** Ctrl-C, SIGTERM and lost clients during deletions in slices. The same command then continues. */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, it } from 'vitest';
import { isBuilt, makeHome, programPath, startProgram } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { ask, describePostgres } from '../support/postgres.js';
import { runProgram } from '../support/run-program.js';

const people = 80_000;

const newToken = ['engine', 'tokens', 'create', '--name', 'client', '--scope', 'admin', '-o', 'json'];

function envOf(home: string) {
	return { HOME: home, PATH: process.env['PATH'] ?? '' };
}

type Count = (text: string) => Promise<number>;

async function fill(db: string, home: string): Promise<void> {
	const file = join(home, 'people.csv');
	const rows = Array.from({ length: people }, (_, at) => `p${at}@example.com,Oslo`);
	await writeFile(file, `email,city\n${rows.join('\n')}\n`);
	const run = (...words: string[]) => {
		const { status, stderr } = runProgram(process.execPath, [programPath, '--db', db, ...words], {
			env: envOf(home),
		});
		expect(status, stderr).toBe(0);
	};
	run('engine', 'init');
	run('lists', 'create', '--name', 'News', '--email-reason', 'asked');
	run('fields', 'create', '--variable', 'city', '--name', 'City');
	run('subscribers', 'import', file, '--list', 'News');
}

const stillThere = 'SELECT count(*) AS n FROM subscribers';
const stillCities = `SELECT count(*) AS n FROM subscribers WHERE meta LIKE '%city%'`;

/** Starts a deletion and sends the signal after its first slice. */
async function broken(
	{ db, home, count }: { db: string; home: string; count: Count },
	words: readonly string[],
	{ signal, of = stillThere }: { signal: NodeJS.Signals; of?: string },
) {
	const before = await count(of);
	const child = startProgram(['--db', db, ...words], { HOME: home });
	let stderr = '';
	child.stderr.on('data', (chunk) => {
		stderr += String(chunk);
	});
	const closed = once(child, 'close');
	await eventually(async () => expect(await count(of)).toBeLessThan(before));
	child.kill(signal);
	const [code, by] = await closed;
	return { code, by, stderr, left: await count(of), before };
}

function deletions(make: () => Promise<{ db: string; home: string; count: Count }>) {
	let place: Awaited<ReturnType<typeof make>>;
	beforeAll(async () => {
		place = await make();
	});

	it('Ctrl-C interrupts the deletion of a field’s values', async () => {
		const words = ['fields', 'delete', 'city', '--confirm', 'city'];
		const { code, stderr, left } = await broken(place, words, { signal: 'SIGINT', of: stillCities });
		expect(left).toBeGreaterThan(0);
		expect(code, stderr).toBe(130);
		expect(stderr).toContain('interrupted');
	});

	it.each(['SIGINT', 'SIGTERM'] as const)('%s interrupts the deletion of subscribers', async (signal) => {
		const verb = signal === 'SIGINT' ? 'clear' : 'delete';
		const words = ['lists', verb, 'News', '--confirm', 'News'];
		const { code, stderr, left } = await broken(place, words, { signal });
		expect(left).toBeGreaterThan(0);
		expect(code, stderr).toBe(signal === 'SIGINT' ? 130 : 143);
		expect(stderr).toContain(signal === 'SIGINT' ? 'interrupted' : 'terminated');
	});

	it('a disconnect interrupts the deletion of a list, and the next call completes the deletion', async () => {
		const { db, home, count } = place;
		const made = runProgram(process.execPath, [programPath, '--db', db, ...newToken], { env: envOf(home) });
		expect(made.status, made.stderr).toBe(0);
		const env = { HOME: home, MAILCTL_TOKEN: JSON.parse(made.stdout).token };
		const server = startProgram(['--db', db, 'serve', '--port', '0', '--no-worker'], { HOME: home });
		let said = '';
		for (const stream of [server.stdout, server.stderr])
			stream.on('data', (chunk) => {
				said += String(chunk);
			});
		const ended = once(server, 'close');
		await eventually(async () => expect(said).toContain('listening on'));
		const baseUrl = /listening on (\S+)/.exec(said)?.[1] ?? '';
		const words = ['--base-url', baseUrl, 'lists', 'delete', 'News', '--confirm', 'News'];
		const before = await count(stillThere);
		const client = startProgram(words, env);
		const closed = once(client, 'close');
		await eventually(async () => expect(await count(stillThere)).toBeLessThan(before));
		client.kill('SIGKILL');
		await closed;
		await eventually(async () => expect(said).toContain('"error":"client_left"'));
		expect(await count(stillThere)).toBeGreaterThan(0);
		const again = runProgram(process.execPath, [programPath, ...words], { env: { ...env, ...envOf(home) } });
		expect(again.status, again.stderr).toBe(0);
		expect(await count(stillThere)).toBe(0);
		server.kill('SIGTERM');
		await ended;
	});
}

describe.skipIf(!isBuilt)('interruptions on SQLite', () => {
	deletions(async () => {
		const home = await makeHome();
		const db = join(home, 'news.db');
		await fill(db, home);
		const count: Count = async (text) => {
			const reader = new Database(db, { readonly: true });
			try {
				return Number(reader.prepare<[], { n: number }>(text).get()?.n);
			} finally {
				reader.close();
			}
		};
		return { db, home, count };
	});
});

describePostgres('interruptions on PostgreSQL', (server) => {
	deletions(async () => {
		const home = await makeHome();
		const db = await server.createDatabase();
		await fill(db, home);
		return { db, home, count: async (text) => Number((await ask(db, text))[0]?.['n']) };
	});
});
