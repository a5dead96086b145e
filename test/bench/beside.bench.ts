// How long requests wait while the same database is sent from and imported into by another process.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { type Bench, type BenchRow, median } from './bench.js';
import { syncMs } from './disk.js';
import { newPlace, type Place, peopleFile, type Running, serve } from './server.js';

const imported = 1_000_000;
const sentPerSecond = 500;
const aloneSeconds = 10;
/** Between one request of a kind and the next. */
const everyMs = { read: 50, write: 100 };

export const bench: Bench = {
	subject: `p99 of requests while ${imported} rows are imported beside and ${sentPerSecond} messages a second are sent`,
	run: async () => {
		const place = newPlace();
		const sink = await startSink();
		const people = peopleFile(place.folder, 'p', imported);
		const limitSeconds = plainImport(place, people);
		place.run('lists', 'create', '--name', 'Written', '--email-reason', 'asked', '-q');
		place.run('subscribers', 'import', peopleFile(place.folder, 'm', 100_000), '-l', '2', '-q');
		place.run('engine', 'init', '--smtp', `smtp://127.0.0.1:${sink.port}`, '-q');
		const mailing = [
			'--from',
			'desk@example.org',
			'--list',
			'2',
			'--subject',
			'Hi',
			'--text',
			'Hello #email#',
		];
		place.run('send', ...mailing, '--job', 'j', '--yes', '--expect-count', '100000', '--no-wait', '-q');
		const server = await serve(place, '--rate', `${sentPerSecond}/s`);
		try {
			const alone = await waits(server, new Promise((resolve) => setTimeout(resolve, aloneSeconds * 1000)));
			const sentAlone = sink.received();
			const began = performance.now();
			const beside = await waits(server, importing(place, people));
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
			sink.server.close();
			place.remove();
		}
	},
};

async function importing(place: Place, file: string): Promise<void> {
	const program = join(process.cwd(), 'bin/mailctl.js');
	const words = [program, 'subscribers', 'import', file, '-l', '1', '-q'];
	const child = spawn(process.execPath, words, { env: place.env, stdio: ['ignore', 'ignore', 'inherit'] });
	const code = await new Promise((resolve) => child.once('exit', resolve));
	if (code !== 0) throw new Error(`the import ended with ${code}`);
}

/** Seconds of sqlite3's own `.import` of as many rows: six columns and the unique index; null where it is missing. */
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
	const { status } = spawnSync('sqlite3', [join(folder, 'limit.db')], { input: script });
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

/** Asks at a steady pace, whether or not the last was answered, until `end` resolves. */
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

interface Sink {
	server: Server;
	port: number;
	received(): number;
}

/** Takes any mail: answers each line as SMTP wants it, and reads none of it. */
async function startSink(): Promise<Sink> {
	let count = 0;
	const server = createServer({ noDelay: true }, (socket) => {
		let isData = false;
		let rest = '';
		const answerLine = (line: string) => {
			if (isData && line !== '.') return;
			if (isData) count += 1;
			const isEnd = isData;
			isData = !isEnd && /^DATA/i.test(line);
			socket.write(isEnd ? '250 taken\r\n' : answerTo(line));
		};
		socket.on('error', () => undefined).write('220 sink\r\n');
		socket.on('data', (chunk) => {
			const lines = (rest + chunk.toString('latin1')).split('\r\n');
			rest = lines.pop() ?? '';
			for (const line of lines) answerLine(line);
		});
	});
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	return { server, port: (server.address() as AddressInfo).port, received: () => count };
}

function answerTo(line: string): string {
	if (/^EHLO/i.test(line)) return '250-sink\r\n250 PIPELINING\r\n';
	if (/^DATA/i.test(line)) return '354 go on\r\n';
	return /^QUIT/i.test(line) ? '221 bye\r\n' : '250 ok\r\n';
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
