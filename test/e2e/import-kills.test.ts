/**
 * Imports whose process is killed at random moments and gone on with, as real processes, with somebody else to say what
 * is there in the end. `MAILCTL_KILL_ROWS`, `MAILCTL_KILLS` and `MAILCTL_FAULTS` name another
 * size.
 */
import type { ChildProcess } from 'node:child_process';
import { cp, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli, isBuilt, makeHome, programPath, startProgram } from '../support/cli.js';
import { startWitness, type Witness, witnessMissing } from '../support/drf.js';
import {
	asked,
	databaseCalls,
	type Ended,
	ended,
	expectHappened,
	expectSound,
	faultsOver,
	hasStrace,
	killAtEach,
	measurePoints,
	runNode,
	seeded,
	spread,
	startNode,
	timeLimit,
} from '../support/fault-points.js';
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
const size = (small: { rows: number; kills: number }) => ({
	rows: asked('MAILCTL_KILL_ROWS', small.rows),
	kills: asked('MAILCTL_KILLS', small.kills),
});
const faults = asked('MAILCTL_FAULTS', 3);

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
	const random = seeded();
	for (let killed = 0; ; ) {
		const child = startProgram([...argv, '--resume'], { HOME: home, ...env });
		const when = random() < 0.5 ? 'before' : 'after';
		const at = 1 + Math.floor(random() * span);
		if (killed < kills) proxy.arm({ at, when, strike: () => child.kill('SIGKILL') });
		else proxy.disarm();
		const end = await ended(child);
		if (end.code !== null) {
			process.stderr.write(`${killed} kills of the client\n`);
			return { totals: totalsOf(end), killed };
		}
		killed += 1;
	}
}

async function expectWhole(rows: number, totals: Totals, file = path): Promise<void> {
	expect(totals).toEqual(expectedTotals(rows));
	expect(await readRejects(`${file}.rejects.csv`)).toEqual(expectedRejects(rows));
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
			await createList(witness);
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
		timeLimit,
	);
});

/** Without mailctl, which says of a busy answer that the list may have been created. */
async function createList(witness: Witness): Promise<void> {
	const headers = { 'X-Secure-Token': witness.token, 'Content-Type': 'application/json' };
	const body = JSON.stringify({ name: 'Readers', email_reason: 'r' });
	do await fetch(`${witness.baseUrl}/sub/lists/`, { method: 'POST', headers, body });
	while ((await pageOf(witness, '/sub/lists/')).results.length === 0);
}

/** Asked without mailctl; a busy answer is asked again. */
async function pageOf<T>(
	{ baseUrl, token }: Witness,
	path: string,
): Promise<{ next: string | null; results: T[] }> {
	let answer: Response;
	do answer = await fetch(`${baseUrl}${path}`, { headers: { 'X-Secure-Token': token } });
	while (answer.status !== 200);
	return (await answer.json()) as { next: string | null; results: T[] }; // the document's page
}

async function peopleOf(witness: Witness): Promise<{ email: string; name: string }[]> {
	const people: { email: string; name: string }[] = [];
	for (let page = 1; ; page += 1) {
		const path = `/sub/lists/1/subscribers/?page_size=1000&page=${page}`;
		const body = await pageOf<(typeof people)[number]>(witness, path);
		people.push(...body.results);
		if (body.next === null) return people;
	}
}

/** What a database file holds, asked without mailctl. */
function expectDatabase(db: string, rows: number): void {
	expectSound(db);
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
			const { rows, kills } = size({ rows: 10_000, kills: 4 });
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
		timeLimit,
	);

	it.skipIf(!hasStrace)(
		'a server that is killed, or whose disk fails, at any write keeps what it said it has (needs strace)',
		async () => {
			const { rows, kills } = size({ rows: 3_000, kills: 3 });
			const db = await prepareDatabase(rows);
			const first = await startServer(db, ['--no-worker']);
			const port = new URL(first.baseUrl).port;
			await first.stop();
			const place = {
				env: { PATH: process.env['PATH'] ?? '', TERM: 'dumb', HOME: home, MAILCTL_TOKEN: first.token },
			};
			const serve = (file: string) => [
				programPath,
				'--db',
				`${file}.db`,
				'serve',
				'--port',
				port,
				'--no-worker',
			];
			const to = ['--base-url', first.baseUrl, '--retries', '0', '-l', '1', '-o', 'json', '--resume'];
			const importing = (file: string) =>
				runNode([programPath, 'subscribers', 'import', file, '--batch-size', '100', ...to], null, place);
			const measured = await fileWithDatabase();
			const work = async (server: ChildProcess) => {
				await listening(server);
				totalsOf(await importing(measured));
			};
			const { points } = await measurePoints({ calls: databaseCalls, work }, serve(measured), place);
			const codes: (number | null)[] = [];
			for (const fault of faultsOver(points, { kills, faults })) {
				const file = await fileWithDatabase();
				const server = startNode(serve(file), fault, place);
				const end = ended(server);
				const told = (await listening(server)) ? await importing(file) : null;
				const what = `${JSON.stringify(fault)}: ${told?.code} ${told?.stderr}`;
				if (fault.does !== 'KILL' && told !== null) await expectReadable(first, what);
				server.kill('SIGTERM');
				const { code, stderr } = await end;
				codes.push(code === 0 && told?.code !== 9 ? 74 : code);
				expect([null, 6, 7, 9], what).toContain(told?.code ?? null);
				expect(`${told?.stderr}${stderr}`, what).not.toMatch(/^ {4}at |\.js:\d/m);

				const again = startNode(serve(file), null, place);
				const stopped = ended(again);
				expect(await listening(again)).toBe(true);
				const totals = totalsOf(told?.code === 9 ? told : await importing(file));
				again.kill('SIGTERM');
				expect(await stopped).toMatchObject({ code: 0 });
				await expectWhole(rows, asOne(totals, rows), file);
				expectDatabase(`${file}.db`, rows);
			}
			expectHappened(`serve, ${points.length} calls`, codes, { kills, faults });
		},
		timeLimit,
	);

	it.skipIf(!hasStrace)(
		'kills at any write leave each person once in a database of this machine (needs strace)',
		async () => {
			const { rows, kills } = size({ rows: 8_000, kills: 5 });
			await prepareDatabase(rows);
			const batch = String(Math.max(200, Math.ceil(rows / 100)));
			const begin = async () => {
				const file = await fileWithDatabase();
				const argv = [
					'--db',
					`${file}.db`,
					'subscribers',
					'import',
					file,
					'-l',
					'1',
					'-o',
					'json',
					'--resume',
				];
				const end: Ended | null = null;
				return { file, words: [programPath, ...argv, '--batch-size', batch], end: end as Ended | null };
			};
			const env = { PATH: process.env['PATH'] ?? '', TERM: 'dumb', HOME: home };
			const calls = `${databaseCalls},write`;
			const { points } = await measurePoints({ calls }, (await begin()).words, { env });
			const killed = await killAtEach(spread(points, kills), {
				begin,
				run: async (place, kill) => {
					const end = await runNode(place.words, kill, { env });
					if (end.code === null) return end;
					place.end = end;
					return { ...end, code: end.code === 9 ? 0 : end.code };
				},
				check: async ({ words, file, end }) => {
					const totals = totalsOf(end ?? (await runNode(words, null, { env })));
					await expectWhole(rows, asOne(totals, rows), file);
					expectDatabase(`${file}.db`, rows);
				},
			});
			process.stderr.write(`${killed} kills over ${points.length} calls\n`);
			expect(killed).toBeGreaterThan(kills / 2);
		},
		timeLimit,
	);
});

/** A copy of the file and its database. */
async function fileWithDatabase(): Promise<string> {
	const file = join(await mkdtemp(join(tmpdir(), 'mailctl-kills-')), 'people.csv');
	for (const name of ['', '.db']) await cp(`${path}${name}`, `${file}${name}`);
	return file;
}

/** False: it ended before. */
function listening(server: ChildProcess): Promise<boolean> {
	return new Promise((resolve) => {
		let said = '';
		server.stderr?.on('data', (chunk: Buffer) => {
			said += chunk.toString();
			if (said.includes('listening on ')) resolve(true);
		});
		server.once('exit', () => resolve(false));
	});
}

/** Reading goes on beside a disk that cannot be written. */
async function expectReadable({ baseUrl, token }: RunningServer, what: string): Promise<void> {
	const answer = await fetch(`${baseUrl}/sub/lists/`, { headers: { 'X-Secure-Token': token } });
	expect(answer.status, what).toBe(200);
}

/** A run that is killed behind its last commit has ended the import: the next is a new one, which finds all of them there. */
function asOne(totals: Totals, rows: number): Totals {
	const { created, updated, unchanged } = expectedTotals(rows);
	return totals.unchanged === created + updated + unchanged
		? { ...totals, created, updated, unchanged }
		: totals;
}
