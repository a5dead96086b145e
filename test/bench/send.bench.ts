// A queue sent by the worker with synchronous=FULL, compared with Postfix's load generator and the same sink.
import { type ChildProcess, spawn } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../support/listen.js';
import { isInstalled } from '../support/run-program.js';
import {
	type Bench,
	type BenchRow,
	ended,
	median,
	program,
	type Run,
	skippedRow,
	timedNode,
} from './bench.js';
import { syncMs } from './disk.js';
import { listening, newPlace, type Place, peopleFile } from './server.js';

const rounds = Number(process.env['ROUNDS'] ?? 5);
const connections = 5;

export interface Subject {
	what: string;
	messages: number;
	bytes: number;
	goal: string;
	content(place: Place): string[];
}

/**
 * With these counts, startup and V8's warm-up take a tenth of the time. With 10,000 HTML messages they take a third.
 */
const subjects: readonly Subject[] = [
	{
		what: '1 KB text',
		messages: 100_000,
		bytes: 1_024,
		goal: '≥ 0.5',
		content: () => ['--text', textOf(1_024)],
	},
	{
		what: '10 KB personalised HTML, links and pixel',
		messages: 50_000,
		bytes: 10_240,
		goal: '≥ 0.45',
		content: ({ folder }) => {
			const file = join(folder, 'news.html');
			writeFileSync(file, htmlOf(7_600));
			return ['--html-file', file, '--bulk'];
		},
	},
];

export const bench: Bench = {
	subject: `messages a second of whole processes, ${connections} connections, one smtp-sink, median of ${rounds} in turn; ROUNDS`,
	run: async () => {
		const missing = ['smtp-sink', 'smtp-source'].filter((name) => !isInstalled(name));
		if (missing.length > 0)
			return subjects.map(({ what, goal }) =>
				skippedRow(what, `${missing.join(' and ')} missing (Postfix)`, goal),
			);
		const rows: BenchRow[] = [];
		for (const subject of subjects) rows.push(...(await measure(subject)));
		return rows;
	},
};

async function measure(subject: Subject): Promise<BenchRow[]> {
	const place = newPlace();
	const sink = await startSink();
	try {
		stage(place, sink.port, subject);
		const source: number[] = [];
		const ours: Run[] = [];
		for (let round = 0; round < rounds; round++) {
			source.push(await sendWithSource(sink.port, subject));
			ours.push(await sendWithWorker(place, subject));
		}
		const disk = `fdatasync ${syncMs(place.folder).toFixed(2)} ms`;
		const peak = Math.round(Math.max(...ours.map(({ peakMb }) => peakMb)));
		const rate = subject.messages / median(ours.map(({ seconds }) => seconds));
		const limit = {
			limit: `smtp-source -d -s ${connections}`,
			limitMedian: `${Math.round(median(source))}/s`,
		};
		return [
			{
				what: `${subject.what} (${disk})`,
				...limit,
				oursMedian: `${Math.round(rate)}/s, ${peak} MB`,
				ratio: rate / median(source),
				goal: subject.goal,
			},
		];
	} finally {
		sink.child.kill('SIGTERM');
		place.remove();
	}
}

export function stage(place: Place, port: number, subject: Subject): void {
	place.run('engine', 'init', '--smtp', `smtp://127.0.0.1:${port}`, '-q');
	place.run('engine', 'settings', 'set', 'public_url', 'https://mail.example.org', '-q');
	place.run('subscribers', 'import', peopleFile(place.folder, 'p', subject.messages), '-l', '1', '-q');
	const campaign = ['--from', 'desk@example.org', '--list', '1', '--subject', 'News of today'];
	const sure = ['--campaign', 'j', '--yes', '--expect-count', String(subject.messages), '--no-wait', '-q'];
	place.run('send', ...campaign, ...subject.content(place), ...sure);
}

async function sendWithSource(port: number, { messages, bytes }: Subject): Promise<number> {
	const began = performance.now();
	const many = ['-s', String(connections), '-m', String(messages), '-l', String(bytes)];
	const child = spawn('smtp-source', ['-d', ...many, `127.0.0.1:${port}`], { stdio: 'inherit' });
	if ((await ended(child)) !== 0) throw new Error('smtp-source failed');
	return messages / ((performance.now() - began) / 1000);
}

export async function sendWithWorker(place: Place, { messages }: Subject): Promise<Run> {
	const path = join(place.folder, 'round.db');
	copyFileSync(place.path, path);
	const words = [program, 'worker', '--drain', '--connections', String(connections), '-o', 'json'];
	const run = await timedNode(words, { ...place.env, MAILCTL_DB: path });
	if (!run.stdout.includes(`"sent": ${messages},`))
		throw new Error(`the worker did not send all: ${run.stdout}`);
	return run;
}

export async function startSink(): Promise<{ child: ChildProcess; port: number }> {
	const port = await freePort();
	const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
	const child = spawn('smtp-sink', [...user, `127.0.0.1:${port}`, '1000'], { stdio: 'ignore' });
	await listening(port);
	return { child, port };
}

export function textOf(bytes: number): string {
	const line = 'Dear #name#, this is one line of the sixteen that make a kilobyte.\n';
	return line.repeat(Math.ceil(bytes / line.length)).slice(0, bytes);
}

function htmlOf(bytes: number): string {
	const link = (at: number) =>
		`<p><a href="https://shop.example.org/offer/${at}?from=news">Offer ${at}</a></p>`;
	const prose = '<p>Dear #name#, here is what we have found for you today, with care and at length.</p>\n';
	const links = Array.from({ length: 10 }, (_, at) => link(at)).join('\n');
	const end = '<p><a href="#unsubscribe_url#">Leave the list</a></p>';
	const room = bytes - links.length - end.length;
	return `<html><body>\n${links}\n${prose.repeat(Math.floor(room / prose.length))}${end}\n</body></html>`;
}
