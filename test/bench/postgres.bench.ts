// The engine on a PostgreSQL server started for the bench, with fsync off.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { systemClock } from '../../src/api/datetime.js';
import { openPostgresStore } from '../../src/store/postgres/store.js';
import type { Store } from '../../src/store/store.js';
import { accepted250, hour, newList, newSubscriber, send, verify } from '../contract/store/fixture.js';
import { ask, canRunPostgres, type OwnPostgres, startOwn } from '../support/postgres.js';
import { runProgram } from '../support/run-program.js';
import { type Bench, type BenchRow, median, perSecond, program, skippedRow } from './bench.js';
import { peopleFile } from './server.js';

const rounds = Number(process.env['ROUNDS'] ?? 3);
const imported = Number(process.env['ROWS'] ?? 300_000);
const queued = 20_000;
const created = 6_000;
const clients = 32;
const connections = 9;
const asked = process.env['PARTS']?.split(',');
const isAsked = (part: string): boolean => asked === undefined || asked.includes(part);

export const bench: Bench = {
	subject: `one machine with its server, fsync off; ROUNDS=${rounds} ROWS=${imported} PARTS=${asked?.join(',') ?? 'import,sending,creating'}`,
	run: async () => {
		if (!canRunPostgres()) return [skippedRow('all of it', 'PostgreSQL is missing (postgresql)')];
		const server = await startOwn();
		try {
			const rows: BenchRow[] = [];
			if (isAsked('import')) rows.push(await importing(server));
			if (isAsked('sending')) rows.push(...(await sending(server)));
			if (isAsked('creating')) rows.push(await creating(server));
			return rows;
		} finally {
			await server.stop();
		}
	},
};

function openStore(url: string, { pool = connections }: { pool?: number } = {}): Promise<Store> {
	return openPostgresStore({
		url: withParameter(url, 'pool', String(pool)),
		clock: systemClock,
		mode: 'create',
	});
}

function withParameter(text: string, name: string, value: string): string {
	const url = new URL(text);
	url.searchParams.set(name, value);
	return url.href;
}

const seconds = async (work: () => unknown): Promise<number> => {
	const began = performance.now();
	await work();
	return (performance.now() - began) / 1_000;
};

async function importing(server: OwnPostgres): Promise<BenchRow> {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-bench-'));
	const taken: { ours: number; limit: number }[] = [];
	try {
		const people = peopleFile(folder, 'p', imported);
		for (let round = 0; round < rounds; round += 1) {
			const url = await server.createDatabase();
			const store = await openStore(url);
			await newList(store);
			await store.close();
			const env = { PATH: process.env['PATH'], HOME: folder, MAILCTL_DB: url };
			const words = [program, 'subscribers', 'import', people, '-l', '1', '-q', '--yes'];
			const ours = await seconds(() => succeed(process.execPath, words, env));
			const rows = join(folder, 'rows.tsv');
			psql(url, `\\copy (SELECT * FROM subscribers ORDER BY id) TO '${rows}'`);
			psql(url, 'TRUNCATE subscribers');
			taken.push({ ours, limit: await seconds(() => psql(url, `\\copy subscribers FROM '${rows}'`)) });
		}
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
	const ours = median(taken.map((one) => one.ours));
	const limit = median(taken.map((one) => one.limit));
	return {
		what: `import of ${imported} rows, the whole command`,
		limit: 'psql \\copy into the same table',
		limitMedian: perSecond(imported, limit),
		oursMedian: perSecond(imported, ours),
		ratio: limit / ours,
		goal: '≥ 0.6',
	};
}

function succeed(name: string, words: readonly string[], env: NodeJS.ProcessEnv = process.env): void {
	const { status, stderr } = runProgram(name, words, { env });
	if (status !== 0) throw new Error(`${name} ended with ${status}: ${stderr}`);
}

function psql(url: string, command: string): void {
	succeed('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-c', command, url]);
}

async function sending(server: OwnPostgres): Promise<BenchRow[]> {
	const url = await server.createDatabase();
	const store = await openStore(url);
	await verify(store);
	const runs = { large: [] as Run[], one: [] as Run[], four: [] as Run[] };
	for (let round = 0; round < rounds; round += 1) {
		runs.large.push(await workersRun(store, url, { processes: 1, group: 200 }));
		runs.one.push(await workersRun(store, url, { processes: 1, group: 50 }));
		runs.four.push(await workersRun(store, url, { processes: 4, group: 50 }));
	}
	await store.close();
	const rate = (name: keyof typeof runs) => median(runs[name].map(({ taken }) => queued / taken));
	const shown = (name: keyof typeof runs) => `${Math.round(rate(name))}/s`;
	const micros = (name: keyof typeof runs, of: 'ours' | 'server') =>
		(median(runs[name].map((one) => one[of])) / queued) * 1e6;
	const cpu = (name: keyof typeof runs, what: string): BenchRow => {
		const sum = micros(name, 'ours') + micros(name, 'server');
		return {
			what: `CPU of ${what}: ours and the server's for a message`,
			limit: 'two cores do nothing else',
			limitMedian: `${Math.round(2e6 / sum)}/s`,
			oursMedian: `${Math.round(micros(name, 'ours'))} and ${Math.round(micros(name, 'server'))} µs`,
			ratio: rate(name) / (2e6 / sum),
			goal: '',
		};
	};
	return [
		{
			what: `${queued} messages leased and settled in groups of 200`,
			limit: 'the goal',
			limitMedian: '8000/s',
			oursMedian: shown('large'),
			ratio: rate('large') / 8_000,
			goal: '≥ 1',
		},
		{
			what: 'the same in groups of 50 by four processes',
			limit: 'by one',
			limitMedian: shown('one'),
			oursMedian: shown('four'),
			ratio: rate('four') / rate('one'),
			goal: '≥ 1.5',
		},
		cpu('large', 'one process, groups of 200'),
		cpu('one', 'one process, groups of 50'),
		cpu('four', 'four processes, groups of 50'),
	];
}

interface Workers {
	processes: number;
	group: number;
}

interface Run {
	taken: number;
	ours: number;
	server: number;
}

async function workersRun(store: Store, url: string, { processes, group }: Workers): Promise<Run> {
	await queueUp(store, processes * warming);
	const children = Array.from({ length: processes }, () =>
		fork(fileURLToPath(import.meta.url), [workerWord, url, String(group)]),
	);
	await Promise.all(children.map((child) => once(child, 'message')));
	await queueUp(store, queued);
	const before = await serverCpu(url);
	const began = performance.now();
	const done = await Promise.all(
		children.map(async (child): Promise<Done> => {
			child.send('begin');
			const [said] = await once(child, 'message');
			return said as Done;
		}),
	);
	const taken = (performance.now() - began) / 1_000;
	const server = (await serverCpu(url)) - before;
	for (const child of children) child.send('end');
	const sum = done.reduce((all, { count }) => all + count, 0);
	if (sum !== queued) throw new Error(`${sum} of ${queued} messages were leased and settled`);
	return { taken, ours: done.reduce((all, { cpu }) => all + cpu, 0), server };
}

async function queueUp(store: Store, count: number): Promise<void> {
	for (let at = 0; at < count; at += 1_000) {
		const to = Array.from({ length: 1_000 }, (_, n) => `p${at + n}@example.org`);
		await send(store, to, { now: systemClock.now() });
	}
}

/** CPU seconds of the server's processes (proc(5): fields 14 and 15 of `stat`, in hundredths). */
async function serverCpu(url: string): Promise<number> {
	const processes = await ask(
		url,
		"SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'",
	);
	return processes.reduce((sum, { pid }) => {
		const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
		const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
		return sum + (Number(fields[11]) + Number(fields[12])) / 100;
	}, 0);
}

const workerWord = 'lease-and-settle';

interface Done {
	count: number;
	cpu: number;
}

const warming = 2_000;

async function work(url: string, max: number): Promise<void> {
	const { queue, close } = await openStore(url, { pool: 4 });
	const owner = String(process.pid);
	const outcome = { kind: 'sent', reply: accepted250 } as const;
	const sendUntil = async (most: number): Promise<number> => {
		let count = 0;
		while (count < most) {
			const now = systemClock.now();
			const leased = await queue.lease({ owner, now, until: now + hour, max, scope: null });
			if (leased.length === 0) break;
			const settlements = leased.map(({ message, fence }) => ({ message, fence, at: now, outcome }));
			const results = await queue.settle({ settlements });
			count += results.filter((result) => result === 'recorded').length;
		}
		return count;
	};
	await sendUntil(warming);
	process.send?.('ready');
	await once(process, 'message');
	const before = process.cpuUsage();
	const count = await sendUntil(Number.POSITIVE_INFINITY);
	const { user, system } = process.cpuUsage(before);
	process.send?.({ count, cpu: (user + system) / 1e6 } satisfies Done);
	await once(process, 'message');
	await close();
	process.disconnect?.();
}

async function creating(server: OwnPostgres): Promise<BenchRow> {
	const ours: number[] = [];
	const limit: number[] = [];
	for (let round = 0; round < rounds; round += 1) {
		const url = await server.createDatabase();
		const store = await openStore(url);
		const list = await newList(store);
		ours.push(await seconds(() => byClients((n) => newSubscriber(store, list, `p${n}@example.org`))));
		await store.close();
		const pool = new pg.Pool({ connectionString: url, max: connections });
		const insert = `INSERT INTO subscribers (id, list_id, email, email_key, name, is_active, meta, source, created_at)
			VALUES ($1, 1, $2, $2, '', 1, '{}', 'API', 1)`;
		limit.push(
			await seconds(() => byClients((n) => pool.query(insert, [created + n + 1, `bare${n}@example.org`]))),
		);
		await pool.end();
	}
	return {
		what: `subscribers created by ${clients} clients in one list`,
		limit: 'a bare INSERT and its commit',
		limitMedian: perSecond(created, median(limit)),
		oursMedian: perSecond(created, median(ours)),
		ratio: median(limit) / median(ours),
		goal: '≥ 1500/s',
	};
}

async function byClients(create: (n: number) => Promise<unknown>): Promise<void> {
	let next = 0;
	const client = async () => {
		while (next < created) {
			next += 1;
			await create(next);
		}
	};
	await Promise.all(Array.from({ length: clients }, client));
}

const [, , word, database, group] = process.argv;
if (word === workerWord && database !== undefined) await work(database, Number(group));
