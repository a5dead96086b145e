// Response times while another process imports into the same database and sends from it.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { startCountingSink } from '../support/counting-sink.js';
import { runProgram } from '../support/run-program.js';
import { type Bench, type BenchRow, median, program, timedNode } from './bench.js';
import { syncMs } from './disk.js';
import { newPlace, type Place, peopleFile, type Running, serve } from './server.js';

const imported = 1_000_000;
const sentPerSecond = 500;
const aloneSeconds = 10;
const everyMs = { read: 50, write: 100 };

export const bench: Bench = {
	subject: `p99 of requests while ${imported} rows are imported beside and ${sentPerSecond} messages a second are sent`,
	run: async () => {
		const place = newPlace();
		const sink = await startCountingSink();
		const people = peopleFile(place.folder, 'p', imported);
		const limitSeconds = plainImport(place, people);
		place.run('lists', 'create', '--name', 'Written', '--email-reason', 'asked', '-q');
		place.run('subscribers', 'import', peopleFile(place.folder, 'm', 100_000), '-l', '2', '-q');
		place.run('engine', 'init', '--smtp', `smtp://127.0.0.1:${sink.port}`, '-q');
		const campaign = [
			'--from',
			'desk@example.org',
			'--list',
			'2',
			'--subject',
			'Hi',
			'--text',
			'Hello #email#',
		];
		place.run('send', ...campaign, '--campaign', 'j', '--yes', '--expect-count', '100000', '--no-wait', '-q');
		const server = await serve(place, '--rate', `${sentPerSecond}/s`);
		try {
			const alone = await waits(server, new Promise((resolve) => setTimeout(resolve, aloneSeconds * 1000)));
			const sentAlone = sink.received();
			const began = performance.now();
			const beside = await waits(
				server,
				timedNode([program, 'subscribers', 'import', people, '-l', '1', '-q'], place.env),
			);
			const seconds = (performance.now() - began) / 1000;
			const sent = Math.round((sink.received() - sentAlone) / seconds);
			const disk = `fdatasync ${syncMs(place.folder).toFixed(2)} ms, ${Math.round(imported / seconds)} rows/s, ${sent} sent/s`;
			return [
				row('page of 100, sending', `${sentAlone / aloneSeconds} sent/s`, alone.reads, 100),
				row('POST subscriber, sending', '', alone.writes, 500),
				row('page of 100, sending and importing', disk, beside.reads, 100),
				row('POST subscriber, sending and importing', disk, beside.writes, 500),
				importRow(seconds, limitSeconds),
			];
		} finally {
			await server.stop();
			sink.close();
			place.remove();
		}
	},
};

function plainImport({ folder }: Place, people: string): number | null {
	const file = join(folder, 'six.csv');
	const [, ...rows] = readFileSync(people, 'utf8').trimEnd().split('\n');
	writeFileSync(file, rows.map((row) => `1,${row},1,{},IMPORT\n`).join(''));
	const script = `PRAGMA page_size = 8192;
CREATE TABLE people (list_id INTEGER, email TEXT, name TEXT, is_active INTEGER, meta TEXT, source TEXT);
CREATE UNIQUE INDEX people_by_email ON people (email, list_id);
.import --csv ${file} people
`;
	const began = performance.now();
	const { status } = runProgram('sqlite3', [join(folder, 'limit.db')], { input: script });
	rmSync(file);
	return status === 0 ? (performance.now() - began) / 1000 : null;
}

function importRow(seconds: number, limitSeconds: number | null): BenchRow {
	return {
		what: 'import of 1M rows, a server sending and answering',
		limit: limitSeconds === null ? 'sqlite3 is missing' : 'sqlite3 .import',
		limitMedian: limitSeconds === null ? '' : `${limitSeconds.toFixed(1)} s`,
		oursMedian: `${seconds.toFixed(1)} s`,
		ratio: limitSeconds === null ? null : limitSeconds / seconds,
		goal: '≥ 0.4',
	};
}

interface Waits {
	reads: number[];
	writes: number[];
}

async function waits({ url, token }: Running, end: Promise<unknown>): Promise<Waits> {
	const agent = new Agent({ keepAlive: true });
	const found: Waits = { reads: [], writes: [] };
	const asked: Promise<void>[] = [];
	let count = 0;
	const ask = (kind: keyof Waits, path: string, body: string | null) => {
		const answered = timed({ agent, url: `${url}${path}`, token, body });
		asked.push(answered.then((ms) => void found[kind].push(ms)));
	};
	const stamp = Math.random().toString(36).slice(2);
	const reading = setInterval(() => ask('reads', '/sub/lists/2/subscribers/?page=7', null), everyMs.read);
	const writing = setInterval(() => {
		count += 1;
		ask('writes', '/sub/lists/2/subscribers/', JSON.stringify({ email: `${stamp}${count}@example.org` }));
	}, everyMs.write);
	await end;
	clearInterval(reading);
	clearInterval(writing);
	await Promise.all(asked);
	agent.destroy();
	return found;
}

function timed(ask: { agent: Agent; url: string; token: string; body: string | null }): Promise<number> {
	const began = performance.now();
	return new Promise((resolve, reject) => {
		const headers = { 'X-Secure-Token': ask.token, 'Content-Type': 'application/json' };
		const method = ask.body === null ? 'GET' : 'POST';
		const sent = request(ask.url, { agent: ask.agent, method, headers }, (response) => {
			response.resume().on('end', () => {
				if (response.statusCode === 200 || response.statusCode === 201) resolve(performance.now() - began);
				else reject(new Error(`${method} was answered with ${response.statusCode}`));
			});
		});
		sent.on('error', reject).end(ask.body ?? undefined);
	});
}

function row(what: string, limit: string, ms: readonly number[], goalMs: number): BenchRow {
	const sorted = [...ms].sort((a, b) => a - b);
	const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN;
	const most = sorted.at(-1) ?? Number.NaN;
	return {
		what,
		limit,
		limitMedian: `${goalMs} ms`,
		oursMedian: `p50 ${median(ms).toFixed(1)}, p99 ${p99.toFixed(0)}, most ${most.toFixed(0)} ms (${ms.length})`,
		ratio: p99 / goalMs,
		goal: '≤ 1',
	};
}
