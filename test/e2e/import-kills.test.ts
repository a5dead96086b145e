/**
 * Imports whose process is killed at random moments and gone on with, as real processes, with somebody else to say what
 * is there in the end. `MAILCTL_KILL_ROWS` and `MAILCTL_KILLS` name another size.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli, isBuilt, makeHome, programPath, startProgram } from '../support/cli.js';
import { startWitness, type Witness, witnessMissing } from '../support/drf.js';
import {
	expectedPeople,
	expectedRejects,
	expectedTotals,
	readRejects,
	type Totals,
	writeRows,
	writeStanding,
} from '../support/import-file.js';
import { type KillingProxy, startKillingProxy } from '../support/killing-proxy.js';
import { type RunningServer, startServer } from '../support/running-server.js';

const missing = await witnessMissing();
const hasStrace = spawnSync('strace', ['-V']).status === 0;
const size = (small: { rows: number; kills: number }) => ({
	rows: Number(process.env['MAILCTL_KILL_ROWS'] ?? small.rows),
	kills: Number(process.env['MAILCTL_KILLS'] ?? small.kills),
});
const timeout = process.env['MAILCTL_KILL_ROWS'] === undefined ? 120_000 : 3_600_000;

let home: string;
let path: string;
/** Ends what a test has started, last first. */
let endings: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
	home = await makeHome();
	path = join(await mkdtemp(join(tmpdir(), 'mailctl-kills-')), 'people.csv');
});
afterEach(async () => {
	for (const end of endings.reverse()) await end();
	endings = [];
});

interface Ended {
	code: number | null;
	stdout: string;
	stderr: string;
}

async function ended(child: ReturnType<typeof startProgram>): Promise<Ended> {
	const exit = once(child, 'close');
	let stdout = '';
	let stderr = '';
	child.stdout?.on('data', (chunk: Buffer) => {
		stdout += chunk.toString();
	});
	child.stderr?.on('data', (chunk: Buffer) => {
		stderr += chunk.toString();
	});
	await exit;
	return { code: child.exitCode, stdout, stderr };
}

/** The totals that the run that came to its end printed; rows were rejected, so it is 9. */
function totalsOf({ code, stdout, stderr }: Ended): Totals {
	expect({ code, stderr: code === 9 ? '' : stderr }).toEqual({ code: 9, stderr: '' });
	return JSON.parse(stdout) as Totals; // compared whole with what is expected
}

/** Runs it until it was killed so often, each time at one of the next `span` requests, then to its end. */
async function importKilled(
	argv: readonly string[],
	env: Readonly<Record<string, string>>,
	{ proxy, kills, span }: { proxy: KillingProxy; kills: number; span: number },
): Promise<{ totals: Totals; killed: number }> {
	for (let killed = 0; ; ) {
		const child = startProgram([...argv, '--resume'], { HOME: home, ...env });
		const when = Math.random() < 0.5 ? 'before' : 'after';
		const at = 1 + Math.floor(Math.random() * span);
		if (killed < kills) proxy.arm({ at, when, strike: () => child.kill('SIGKILL') });
		else proxy.disarm();
		const end = await ended(child);
		if (end.code !== null) return { totals: totalsOf(end), killed };
		killed += 1;
	}
}

async function expectWhole(rows: number, totals: Totals): Promise<void> {
	expect(totals).toEqual(expectedTotals(rows));
	expect(await readRejects(`${path}.rejects.csv`)).toEqual(expectedRejects(rows));
}

async function mailctl(argv: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
	const { code, stderr } = await cli(argv, { env });
	expect({ argv, code, stderr: code === 0 ? '' : stderr }).toEqual({ argv, code: 0, stderr: '' });
}

describe.skipIf(!isBuilt || missing !== null)(`on a Django deployment (${missing ?? 'witness'})`, () => {
	it(
		'kills, throttling and lost answers leave each person once, counted as what they were',
		async () => {
			const { rows, kills } = size({ rows: 600, kills: 3 });
			const witness = await startWitness({ pageSize: 1_000, maxPageSize: 1_000, busy: 3 });
			const proxy = await startKillingProxy(witness.baseUrl);
			endings = [witness.stop, proxy.close];
			const env = { MAILCTL_TOKEN: witness.token };
			const direct = ['--base-url', witness.baseUrl];
			await mailctl([...direct, 'lists', 'create', '--name', 'Readers', '--email-reason', 'r'], env);
			await writeStanding(`${path}.standing`, rows);
			await mailctl([...direct, 'subscribers', 'import', `${path}.standing`, '-l', '1'], env);
			await writeRows(path, rows);
			const argv = ['--base-url', proxy.baseUrl, 'subscribers', 'import', path, '-l', '1', '-o', 'json'];
			const { totals, killed } = await importKilled(argv, env, {
				proxy,
				kills,
				span: Math.floor((2 * rows) / (kills + 1)),
			});
			expect(killed).toBeGreaterThan(kills / 2);
			await expectWhole(rows, totals);
			const people = await peopleOf(witness);
			expect(people.length).toBe(expectedPeople(rows));
			expect(new Set(people.map(({ email }) => email)).size).toBe(people.length);
			expect(
				people.filter(({ email, name }) => email !== `p${name.slice('Name '.length)}@example.com`),
			).toEqual([]);
		},
		timeout,
	);
});

/** Asked without mailctl; a busy answer is asked again. */
async function peopleOf({ baseUrl, token }: Witness): Promise<{ email: string; name: string }[]> {
	const people: { email: string; name: string }[] = [];
	for (let page = 1; ; page += 1) {
		const url = `${baseUrl}/sub/lists/1/subscribers/?page_size=1000&page=${page}`;
		let answer: Response;
		do answer = await fetch(url, { headers: { 'X-Secure-Token': token } });
		while (answer.status !== 200);
		const body = (await answer.json()) as { next: string | null; results: typeof people }; // the document's page
		people.push(...body.results);
		if (body.next === null) return people;
	}
}

/** What a database file holds, asked without mailctl. */
function expectDatabase(db: string, rows: number): void {
	const database = new Sqlite(db, { readonly: true });
	const count = (sql: string) => database.prepare(sql).pluck().get();
	expect(count('SELECT count(*) FROM subscribers')).toBe(expectedPeople(rows));
	expect(count('SELECT count(DISTINCT email_key) FROM subscribers')).toBe(expectedPeople(rows));
	expect(
		count("SELECT count(*) FROM subscribers WHERE email <> 'p' || substr(name, 6) || '@example.com'"),
	).toBe(0);
	database.close();
}

async function prepareDatabase(rows: number): Promise<string> {
	const db = `${path}.db`;
	const env = { HOME: home };
	await mailctl(['--db', db, 'engine', 'init'], env);
	await mailctl(['--db', db, 'lists', 'create', '--name', 'Readers', '--email-reason', 'r'], env);
	await writeStanding(`${path}.standing`, rows);
	await mailctl(['--db', db, 'subscribers', 'import', `${path}.standing`, '-l', '1'], env);
	await writeRows(path, rows);
	return db;
}

describe.skipIf(!isBuilt)('on a deployment of our own', () => {
	it(
		'kills of the client leave each person once, counted as what they were',
		async () => {
			const { rows, kills } = size({ rows: 20_000, kills: 5 });
			const batch = Math.max(200, Math.ceil(rows / 100));
			const db = await prepareDatabase(rows);
			const server: RunningServer = await startServer(db, ['--no-worker']);
			const proxy = await startKillingProxy(server.baseUrl);
			endings = [server.stop, proxy.close];
			const argv = ['--base-url', proxy.baseUrl, 'subscribers', 'import', path, '-l', '1', '-o', 'json'];
			const { totals, killed } = await importKilled(
				[...argv, '--batch-size', String(batch)],
				{ MAILCTL_TOKEN: server.token },
				{ proxy, kills, span: Math.ceil(rows / batch / (kills + 1)) + 6 },
			);
			expect(killed).toBeGreaterThan(kills / 2);
			await expectWhole(rows, totals);
			expectDatabase(db, rows);
		},
		timeout,
	);

	it.skipIf(!hasStrace)(
		'kills at any write leave each person once in a database of this machine (needs strace)',
		async () => {
			const { rows, kills } = size({ rows: 20_000, kills: 5 });
			const batch = Math.max(200, Math.ceil(rows / 100));
			const db = await prepareDatabase(rows);
			const argv = ['--db', db, 'subscribers', 'import', path, '-l', '1', '-o', 'json', '--resume'];
			const words = [programPath, ...argv, '--batch-size', String(batch)];
			const span = Math.ceil((rows / 20_000) * (1_000 / kills));
			let killed = 0;
			let end: Ended;
			do {
				const at = 1 + Math.floor(Math.random() * span);
				const inject = `inject=pwrite64,fdatasync,fsync:signal=KILL:when=${at}`;
				const strace = ['-f', '-qq', '-o', '/dev/null', '-e', inject, process.execPath, ...words];
				const [command, ...rest] = killed < kills ? ['strace', ...strace] : [process.execPath, ...words];
				end = await ended(
					spawn(command, rest, { env: { PATH: process.env['PATH'] ?? '', TERM: 'dumb', HOME: home } }),
				);
				killed += 1;
			} while (end.code !== 9 && killed <= kills);
			expect(killed).toBeGreaterThan(kills / 2);
			await expectWhole(rows, totalsOf(end));
			expectDatabase(db, rows);
		},
		timeout,
	);
});
