// Sending a queue with DKIM, compared with the RSA-2048 signatures that the cores of this machine can make.
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { cpus } from 'node:os';
import { promisify } from 'node:util';
import { isInstalled } from '../support/run-program.js';
import { type Bench, type BenchRow, median, skippedRow } from './bench.js';
import { syncMs } from './disk.js';
import { type Subject, sendWithWorker, stage, startSink, textOf } from './send.bench.js';
import { newPlace } from './server.js';

const rounds = Number(process.env['ROUNDS'] ?? 5);
const messages = 50_000;
const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;

const subject: Subject = {
	what: 'sent with RSA-2048 DKIM, 1 KB text',
	messages,
	bytes: 1_024,
	goal: '≥ 0.75',
	content: () => ['--text', textOf(1_024)],
};

export const bench: Bench = {
	subject: `messages a second of whole processes, the sink and the database beside them, median of ${rounds} in turn; ROUNDS`,
	run: async () => {
		if (!isInstalled('smtp-sink'))
			return [skippedRow(subject.what, 'smtp-sink missing (Postfix)', subject.goal)];
		return await measure();
	},
};

async function measure(): Promise<BenchRow[]> {
	const place = newPlace();
	const sink = await startSink();
	try {
		stage(place, sink.port, subject);
		const name = ['--domain', 'example.org', '--selector', 's1'];
		place.run('engine', 'dkim', 'add', ...name, '--type', 'rsa', '-q');
		const limit: number[] = [];
		const ours: number[] = [];
		for (let round = 0; round < rounds; round++) {
			limit.push(await signaturesPerSecond());
			ours.push(messages / (await sendWithWorker(place, subject)).seconds);
		}
		return [
			{
				what: `${subject.what} (fdatasync ${syncMs(place.folder).toFixed(2)} ms)`,
				limit: `${cpus().length} cores / time of a signature`,
				limitMedian: `${Math.round(median(limit))}/s`,
				oursMedian: `${Math.round(median(ours))}/s`,
				ratio: median(ours) / median(limit),
				goal: subject.goal,
			},
		];
	} finally {
		sink.child.kill('SIGTERM');
		place.remove();
	}
}

async function signaturesPerSecond(): Promise<number> {
	const signOnce = promisify<string, Buffer, KeyObject, Buffer>(sign);
	const data = randomBytes(600);
	const end = performance.now() + 2_000;
	let count = 0;
	const began = performance.now();
	const line = async () => {
		while (performance.now() < end) {
			await signOnce('sha256', data, key);
			count += 1;
		}
	};
	await Promise.all(Array.from({ length: 2 * cpus().length }, line));
	return count / ((performance.now() - began) / 1_000);
}
