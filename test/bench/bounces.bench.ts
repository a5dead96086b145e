// Classifying bounces, compared with reading the files and with a MIME parser alone.
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import PostalMime from 'postal-mime';
import { systemClock } from '../../src/api/datetime.js';
import { ingestMail, readReport } from '../../src/delivery/bounces/ingest.js';
import { createVerp } from '../../src/delivery/bounces/verp.js';
import { openStore } from '../../src/store/open.js';
import { hasCorpus } from '../delivery/bounces/corpus.js';
import { type Bench, type BenchRow, median, skippedRow } from './bench.js';

const rounds = 15;
const folder = join(process.env['MAILCTL_CORPORA'] ?? '../shared/corpora', 'bounces');

export const bench: Bench = {
	subject: `mails a second over the corpus, median of ${rounds} rounds in turn`,
	run: async () => {
		if (!hasCorpus) return [skippedRow('reading a report', 'the corpora are missing', '≥ 500/s')];
		const names = (await readdir(folder)).filter((name) => name.endsWith('.eml'));
		const paths = names.map((name) => join(folder, name));
		return [await understanding(paths), await ingesting(paths)];
	},
};

function understanding(paths: readonly string[]): Promise<BenchRow> {
	return beside('file read, report understood', paths, {
		limit: 'the file read, postal-mime',
		goal: '≥ 500/s',
		theirs: async (bytes) => void (await PostalMime.parse(bytes)),
		ours: async (bytes) => void readReport(bytes),
	});
}

async function ingesting(paths: readonly string[]): Promise<BenchRow> {
	const home = await mkdtemp(join(tmpdir(), 'mailctl-bench-'));
	const store = await openStore(join(home, 'bench.db'), { clock: systemClock, mode: 'create' });
	const verp = createVerp('bounces@example.com', [
		{ id: 1, secret: Buffer.alloc(32, 1).toString('base64url') },
	]);
	const options = { verp, clock: systemClock, record: store.writes.recordReport };
	const row = await beside('file read, matched and asked for', paths, {
		limit: 'the file read alone',
		goal: '≥ 500/s',
		theirs: async () => undefined,
		ours: async (bytes) => void (await ingestMail({ bytes, returnPath: null }, options)),
	});
	await store.close();
	await rm(home, { recursive: true });
	return row;
}

interface Sides {
	limit: string;
	goal: string;
	theirs(bytes: Buffer): Promise<void>;
	ours(bytes: Buffer): Promise<void>;
}

async function beside(
	what: string,
	paths: readonly string[],
	{ limit, goal, theirs, ours }: Sides,
): Promise<BenchRow> {
	const times = { theirs: [] as number[], ours: [] as number[] };
	for (let round = 0; round <= rounds; round++) {
		const limitMs = await timed(paths, theirs);
		const oursMs = await timed(paths, ours);
		if (round === 0) continue;
		times.theirs.push(limitMs);
		times.ours.push(oursMs);
	}
	const rate = (ms: readonly number[]) => (paths.length / median(ms)) * 1_000;
	const [theirRate, ourRate] = [rate(times.theirs), rate(times.ours)];
	return {
		what,
		limit,
		limitMedian: `${Math.round(theirRate)}/s`,
		oursMedian: `${Math.round(ourRate)}/s`,
		ratio: ourRate / theirRate,
		goal,
	};
}

async function timed(paths: readonly string[], each: (bytes: Buffer) => Promise<void>): Promise<number> {
	const began = performance.now();
	for (const path of paths) await each(await readFile(path));
	return performance.now() - began;
}
