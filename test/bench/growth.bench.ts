import { formatDateTime, microsPerDay, systemClock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';
import { runProgram } from '../support/run-program.js';
import { type Bench, type BenchRow, median, program } from './bench.js';
import { newPlace, type Place } from './server.js';
import { fillYear } from './year.js';

const sizes = (process.env['SIZES'] ?? '200000,2000000').split(',').map(Number);
const rounds = Number(process.env['ROUNDS'] ?? 3);
const mostPeople = 5_000_000;
const leastMs = 10;

interface Subject {
	words: readonly string[];
	walks?: string;
	each?: readonly (readonly string[])[];
	once?: true;
}

const day = (ago: number) => formatDateTime(systemClock.now() - ago * microsPerDay).slice(0, 10);
const limit = ['--limit', '100'];
const campaign = 'c0000000-0000-4000-8000-000000000001';

const subjects: readonly Subject[] = [
	{ words: ['lists', 'list'] },
	{ words: ['subscribers', 'list', '-l', '1', ...limit] },
	{ words: ['api', 'GET', '/sub/lists/1/subscribers/', '--param', 'page=10000', '--param', 'page_size=10'] },
	{ words: ['subscribers', 'list', '-l', '1', '--email', 'p7@d7.example'] },
	{ words: ['subscribers', 'list', '-l', '1', '--email-contains', 'p77@', ...limit], walks: 'the list' },
	{ words: ['subscribers', 'stats', '-l', '1'], walks: 'the list' },
	{ words: ['messages', 'list', ...limit] },
	{ words: ['api', 'GET', '/ext/messages/', '--param', 'page=10000', '--param', 'page_size=10'] },
	{
		words: ['api', 'GET', '/ext/messages/', '--param', 'page=190', '--param', 'page_size=1000'],
		walks: 'all',
	},
	{
		words: ['api', 'GET', '/ext/messages/slice/', '--param', 'cursor=0.189000', '--param', 'limit=1000'],
	},
	...['sent', 'bounced', 'uncertain', 'deferred', 'staged'].map((status) => ({
		words: ['messages', 'list', '--status', status, ...limit],
	})),
	{ words: ['messages', 'list', '--status', 'canceled', ...limit], walks: 'what was canceled' },
	{ words: ['messages', 'list', '--since', day(1), ...limit] },
	{ words: ['messages', 'list', '--since', day(300), ...limit] },
	{ words: ['messages', 'list', '--tag', 'news', ...limit] },
	{ words: ['messages', 'list', '--tag', 'receipt', '--status', 'failed', ...limit], walks: 'what failed' },
	{ words: ['messages', 'list', '--campaign', campaign, ...limit] },
	{ words: ['messages', 'list', '--to', 'p7@d7.example'] },
	{ words: ['campaigns', 'list', ...limit] },
	{ words: ['campaigns', 'get', campaign] },
	{ words: ['report', '--from', day(1), '--to', day(1)] },
	{ words: ['report', '--from', day(364), '--to', day(0)] },
	{ words: ['report', '--from', day(1), '--to', day(1), '--tag', 'rare'], walks: 'the messages of the tag' },
	{ words: ['why', 'p7@d7.example'] },
	{ words: ['engine', 'status'] },
	{ words: ['engine', 'queue', 'stats'] },
	{ words: ['doctor', '--offline'] },
	{ words: ['engine', 'settings', 'set', 'time_zone'], each: [['Europe/Oslo'], ['Asia/Tokyo'], ['UTC']] },
	{
		words: ['subscribers', 'erase'],
		each: [11, 12, 13].map((number) => [
			`p${number}@d${number}.example`,
			'--confirm',
			`p${number}@d${number}.example`,
		]),
	},
	{
		words: ['fields', 'update', 'plan', '--variable', 'tariff', '--confirm', 'plan'],
		once: true,
		walks: 'all subscribers',
	},
	{
		words: ['fields', 'delete', 'tariff', '--confirm', 'tariff'],
		once: true,
		walks: 'all subscribers',
	},
	{ words: ['lists', 'delete', '100', '--confirm', 'List 100'], once: true },
	{ words: ['engine', 'check'], once: true, walks: 'everything' },
];

export const bench: Bench = {
	subject: `CPU of a whole command without its start-up, beside ${sizes.join(', ')} messages; up to ${leastMs} ms count as ${leastMs}; SIZES, ROUNDS=${rounds}`,
	run: async () => {
		const columns: Map<string, number>[] = [];
		for (const messages of sizes) columns.push(await measureSize(messages));
		return [...(columns[0]?.keys() ?? [])].map((what) =>
			rowOf(
				what,
				columns.map((column) => column.get(what) ?? Number.NaN),
			),
		);
	},
};

function rowOf(what: string, times: readonly number[]): BenchRow {
	const shown = (ms: number | undefined) =>
		`${(ms ?? Number.NaN).toFixed(ms !== undefined && ms < 1 ? 2 : 0)} ms`;
	const [small = Number.NaN, ...larger] = times;
	const walks = subjects.find(({ words }) => nameOf(words) === what)?.walks;
	const least = what.startsWith('store: ') ? 0 : leastMs;
	return {
		what,
		limit: `beside ${sizes[0]}`,
		limitMedian: shown(small),
		oursMedian: larger.map(shown).join(', '),
		ratio: Math.max(least, larger.at(-1) ?? Number.NaN) / Math.max(least, small),
		goal: walks === undefined ? '≤ 2' : `walks ${walks}`,
	};
}

function nameOf(words: readonly string[]): string {
	const kept = words.filter((word, at) => ![word, words[at - 1]].includes('--confirm'));
	return kept.join(' ').replace(campaign, 'UUID').replaceAll('--param ', '');
}

async function measureSize(messages: number): Promise<Map<string, number>> {
	const place = newPlace();
	try {
		const began = performance.now();
		fillYear(place.path, { messages, subscribers: Math.min(messages / 2, mostPeople) });
		process.stdout.write(`  ${messages} messages in ${((performance.now() - began) / 1000).toFixed(0)} s\n`);
		const times = await measureStore(place);
		const startUp = median(Array.from({ length: 2 * rounds }, () => cpuMs(place, ['version'])));
		for (const { words, each, once } of subjects) {
			const runs = each ?? Array.from({ length: once ? 1 : rounds }, () => []);
			const ms = runs.map((more) => cpuMs(place, [...words, ...more]));
			times.set(nameOf(words), Math.max(0, median(ms) - startUp));
		}
		return times;
	} finally {
		place.remove();
	}
}

function cpuMs({ env }: Place, words: readonly string[]): number {
	const tell = `process.on('exit', () => { const { user, system } = process.cpuUsage(); process.stderr.write('cpu ' + (user + system) / 1000 + '\\n'); })`;
	const run = runProgram(
		process.execPath,
		['--import', `data:text/javascript,${encodeURIComponent(tell)}`, program, ...words],
		{ env },
	);
	const isFound = run.status === 0 || (words[0] === 'doctor' && run.status === 11);
	if (!isFound) throw new Error(`mailctl ${words.join(' ')} ended with ${run.status}: ${run.stderr}`);
	return Number(/cpu ([\d.]+)/.exec(run.stderr)?.[1]);
}

async function measureStore({ path }: Place): Promise<Map<string, number>> {
	const times = new Map<string, number[]>();
	const measure = async <T>(what: string, operate: () => Promise<T>): Promise<T> => {
		const began = process.cpuUsage();
		const result = await operate();
		const { user, system } = process.cpuUsage(began);
		times.set(what, [...(times.get(what) ?? []), (user + system) / 1000]);
		return result;
	};
	for (let round = 0; round < rounds; round += 1) {
		const open = () => openStore(path, { clock: systemClock, mode: 'existing' });
		const store = await measure('store: open', open);
		const now = systemClock.now() + 3 * microsPerDay;
		for (let group = 0; group < 5; group += 1) {
			const leased = await measure('store: lease of 50', () =>
				store.queue.lease({ owner: 'bench', now, until: now + microsPerDay, max: 50, scope: null }),
			);
			const reply = { phase: 'answer', code: 250, enhanced: '2.0.0', text: 'Ok: queued' } as const;
			const settlements = leased.map(({ message, fence }) => ({
				...{ message, fence, at: now, outcome: { kind: 'sent', reply } as const },
			}));
			await measure('store: settle of 50', () => store.queue.settle({ settlements }));
			if (leased.length < 50) throw new Error(`a lease of ${leased.length}`);
		}
		await measure('store: poll of an empty lane', () => store.reads.nextDue({ scope: null }));
		await store.close();
	}
	return new Map([...times].map(([what, ms]) => [what, median(ms)]));
}
