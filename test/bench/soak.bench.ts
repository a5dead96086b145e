// A server at a quarter of its capacity for MINUTES. After the first tenth, its memory and its response times
// must stay level. SAMPLES=FILE saves the samples.
import { appendFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { systemClock } from '../../src/api/datetime.js';
import { type Keyring, signToken } from '../../src/delivery/tracking/tokens.js';
import { openStore } from '../../src/store/open.js';
import { type CountingSink, startCountingSink } from '../support/counting-sink.js';
import { memoryOf } from '../support/memory.js';
import { arrived, orderMail } from '../support/soak.js';
import { type Bench, type BenchRow, median } from './bench.js';
import { type DiskProbe, startDiskProbe, syncMs } from './disk.js';
import { newPlace, type Place, peopleFile, type Running, serve, trackingKeyring } from './server.js';

const minutes = Number(process.env['MINUTES'] ?? 10);
const people = 100_000;
const fullSpeedSeconds = 60;
const clients = 8;
const recipients = 10;
const pages = 2;
const opens = 5;
const packagedEnv = {
	MALLOC_ARENA_MAX: '2',
	MALLOC_MMAP_THRESHOLD_: '131072',
	MALLOC_TRIM_THRESHOLD_: '131072',
};

export const bench: Bench = {
	subject: `a server at a quarter of its capacity for ${minutes} min; MINUTES SAMPLES`,
	run: async () => {
		const place = newPlace();
		const sink = await startCountingSink();
		place.run('subscribers', 'import', peopleFile(place.folder, 'p', people), '-l', '1', '-q');
		place.run('lists', 'create', '--name', 'Written', '--email-reason', 'asked', '-q');
		place.run('engine', 'init', '--smtp', `smtp://127.0.0.1:${sink.port}`, '-q');
		place.run('engine', 'settings', 'set', 'public_url', 'https://mail.example.org', '-q');
		const keyring = await trackingKeys(place);
		const server = await serve({ ...place, env: { ...place.env, ...packagedEnv } });
		const load = createLoad(server, keyring);
		const disk = await startDiskProbe(place.folder);
		try {
			const capacity = await fullSpeed(load, sink);
			disk.takeWaits();
			const samples = await steady({ load, disk, server, place, perSecond: capacity / 4 });
			await arrived(sink, load.accepted());
			await server.stop();
			place.run('engine', 'check', '-q');
			return rowsOf(
				samples,
				`${(capacity / 4).toFixed(1)} rounds/s, fdatasync ${syncMs(place.folder).toFixed(2)} ms`,
			);
		} finally {
			load.close();
			await disk.stop();
			await server.stop();
			sink.close();
			place.remove();
		}
	},
};

async function trackingKeys(place: Place): Promise<Keyring> {
	const store = await openStore(place.path, { clock: systemClock, mode: 'existing' });
	const keyring = await trackingKeyring(store);
	await store.close();
	return keyring;
}

interface SoakSample {
	minute: number;
	residentMb: number;
	openFiles: number;
	logMb: number;
	databaseMb: number;
	sendMs: number;
	postMs: number;
	pageMs: number;
	openMs: number;
	diskMs: number;
}

type Kind = 'send' | 'post' | 'page' | 'open';

interface Load {
	round(): Promise<void>;
	accepted(): number;
	takeWaits(): Record<Kind, number[]>;
	close(): void;
}

function createLoad({ url, token }: Running, keyring: Keyring): Load {
	const agent = new Agent({ keepAlive: true });
	const noWaits = (): Record<Kind, number[]> => ({ send: [], post: [], page: [], open: [] });
	let waits = noWaits();
	let rounds = 0;
	let accepted = 0;
	const ask = async (kind: Kind, path: string, body?: object): Promise<string> => {
		const began = performance.now();
		const answer = await answered({ agent, url: `${url}${path}`, token, body });
		waits[kind].push(performance.now() - began);
		return answer;
	};
	return {
		round: async () => {
			rounds += 1;
			const number = rounds;
			const to = Array.from({ length: recipients }, (_, at) => `r${number}-${at}@example.org`);
			const mail = { ...orderMail(Math.floor(number / 100)), to };
			const { messages } = sendAnswer(await ask('send', '/message/send/', mail));
			accepted += messages.length;
			await ask('post', '/sub/lists/2/subscribers/', { email: `s${number}@example.org` });
			for (let page = 0; page < pages; page++)
				await ask('page', `/sub/lists/1/subscribers/?page=${((number * 7 + page) % 1000) + 1}`);
			for (const { id } of messages.slice(0, opens))
				await ask('open', `/o/${signToken(keyring, 'o', id)}.gif`);
		},
		accepted: () => accepted,
		takeWaits: () => {
			const taken = waits;
			waits = noWaits();
			return taken;
		},
		close: () => agent.destroy(),
	};
}

function sendAnswer(text: string): { messages: { id: string }[] } {
	return JSON.parse(text);
}

function answered(ask: {
	agent: Agent;
	url: string;
	token: string;
	body: object | undefined;
}): Promise<string> {
	return new Promise((resolve, reject) => {
		const method = ask.body === undefined ? 'GET' : 'POST';
		const headers = { 'X-Secure-Token': ask.token, 'Content-Type': 'application/json' };
		request(ask.url, { agent: ask.agent, method, headers }, (response) => {
			let text = '';
			response.setEncoding('latin1').on('data', (chunk) => {
				text += chunk;
			});
			response.on('end', () => {
				if (response.statusCode === 200 || response.statusCode === 201) resolve(text);
				else reject(new Error(`${method} ${ask.url} was answered with ${response.statusCode}: ${text}`));
			});
		})
			.on('error', reject)
			.end(ask.body === undefined ? undefined : JSON.stringify(ask.body));
	});
}

async function fullSpeed(load: Load, sink: CountingSink): Promise<number> {
	const began = performance.now();
	let rounds = 0;
	const client = async () => {
		while (performance.now() - began < fullSpeedSeconds * 1000) {
			await load.round();
			rounds += 1;
		}
	};
	await Promise.all(Array.from({ length: clients }, client));
	await arrived(sink, load.accepted());
	load.takeWaits();
	return (rounds * 1000) / (performance.now() - began);
}

async function steady(at: {
	load: Load;
	disk: DiskProbe;
	server: Running;
	place: Place;
	perSecond: number;
}): Promise<SoakSample[]> {
	const samples: SoakSample[] = [];
	const running = new Set<Promise<void>>();
	const failures: unknown[] = [];
	const began = performance.now();
	let begun = 0;
	while (samples.length < minutes && failures.length === 0) {
		await new Promise((resolve) => setTimeout(resolve, 20));
		const seconds = (performance.now() - began) / 1000;
		for (; begun < seconds * at.perSecond; begun++) {
			const round: Promise<void> = at.load
				.round()
				.catch((error: unknown) => void failures.push(error))
				.finally(() => running.delete(round));
			running.add(round);
		}
		if (seconds / 60 < samples.length + 1) continue;
		samples.push(sampleOf(at, samples.length + 1));
		keep(samples);
	}
	await Promise.all(running);
	if (failures.length > 0) throw failures[0];
	return samples;
}

function sampleOf(
	{ load, disk, server, place }: { load: Load; disk: DiskProbe; server: Running; place: Place },
	minute: number,
): SoakSample {
	const { pid } = server.child;
	if (pid === undefined) throw new Error('serve did not start');
	const waits = load.takeWaits();
	const mib = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
	return {
		minute,
		residentMb: Math.round(memoryOf(pid).residentMb),
		openFiles: readdirSync(`/proc/${pid}/fd`).length,
		logMb: Math.round(mib(`${place.path}-wal`) / 2 ** 20),
		databaseMb: Math.round(mib(place.path) / 2 ** 20),
		sendMs: p99(waits.send),
		postMs: p99(waits.post),
		pageMs: p99(waits.page),
		openMs: p99(waits.open),
		diskMs: p99(disk.takeWaits()),
	};
}

function p99(values: readonly number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	return Math.round((sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN) * 10) / 10;
}

function keep(samples: readonly SoakSample[]): void {
	const file = process.env['SAMPLES'];
	const last = samples.at(-1);
	if (file === undefined || last === undefined) return;
	if (samples.length === 1) writeFileSync(file, `${Object.keys(last).join('\t')}\n`);
	appendFileSync(file, `${Object.values(last).join('\t')}\n`);
}

function rowsOf(samples: readonly SoakSample[], limit: string): BenchRow[] {
	const tenth = Math.max(1, Math.floor(samples.length / 10));
	const row = (what: string, of: keyof SoakSample, unit: string): BenchRow => {
		const before = median(samples.slice(tenth, 2 * tenth).map((sample) => sample[of]));
		const after = median(samples.slice(-tenth).map((sample) => sample[of]));
		return {
			what,
			limit,
			limitMedian: `${before} ${unit}`,
			oursMedian: `${after} ${unit}`,
			ratio: after / before,
			goal: 'level',
		};
	};
	return [
		row('resident memory', 'residentMb', 'MB'),
		row('open files', 'openFiles', ''),
		row('log', 'logMb', 'MB'),
		row('send call to 10, p99', 'sendMs', 'ms'),
		row('POST subscriber, p99', 'postMs', 'ms'),
		row('page of 100, p99', 'pageMs', 'ms'),
		row('pixel, p99', 'openMs', 'ms'),
		row('80 KiB to the disk, without us, p99', 'diskMs', 'ms'),
	];
}
