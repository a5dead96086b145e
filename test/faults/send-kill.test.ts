/**
 * `send --csv` is killed at many moments, while it stages, before it releases and while it sends, and gone on with each
 * time. The witness is a sink outside its process: everyone gets the message, and a kill repeats at most what was sent
 * and not recorded yet. The long run is asked for by `MAILCTL_SEND_ROWS=100000 MAILCTL_SEND_KILLS=10`.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isBuilt, startProgram } from '../support/cli.js';
import { makeProject } from '../support/project.js';
import { messageIdIn, type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

const rows = Number(process.env['MAILCTL_SEND_ROWS'] ?? 2_000);
const kills = Number(process.env['MAILCTL_SEND_KILLS'] ?? 4);
/** 100 outcomes not recorded and 5 conversations in flight. */
const window = 105;
const timeoutMs = Math.max(120_000, rows * 20);

/** What a process did until it ended; `killed` says whether that was ours. */
interface Ended {
	code: number | null;
	stdout: string;
	stderr: string;
}

async function end(child: ChildProcess): Promise<Ended> {
	let stdout = '';
	let stderr = '';
	child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
	child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
	const [code] = await once(child, 'exit');
	return { code, stdout, stderr };
}

/** Resolves when the sink has that many, or the child is gone. */
async function untilSent(sink: SmtpSink, count: number, child: ChildProcess): Promise<void> {
	const gone = once(child, 'exit');
	await Promise.race([sink.until(count), gone]);
}

it.skipIf(!isBuilt)(
	`reaches ${rows} people once, killed ${kills} times, and repeats at most ${window} a kill`,
	async () => {
		const sink = await startSmtpSink();
		const project = await makeProject({ smtp: sink.port });
		const lines = Array.from({ length: rows }, (_, row) => `r${row}@example.com,Reader ${row}\n`);
		const people = await project.file('people.csv', `email,name\n${lines.join('')}`);
		const results = join(project.folder, 'results.csv');
		const env = { HOME: project.folder };
		const consent = ['--yes', '--expect-count', String(rows)];
		const begin = [
			...['--db', project.db, 'send', '--from', 'news@example.com', '--csv', people, '--job', 'november'],
			...['--subject', 'News', '--text', 'Hi #name#', ...consent],
		];
		const goOn = ['--db', project.db, 'send', 'resume', 'november', ...consent, '--results', results];

		// The first kill: as soon as rows are staged, which is before anything is sent.
		const first = startProgram(begin, env);
		first.stderr?.once('data', () => first.kill('SIGKILL'));
		await end(first);
		expect(sink.received).toHaveLength(0);

		// The second: in the middle of the rows, or where all of them are staged.
		const second = startProgram((await rowsStaged(project.run)) === null ? begin : goOn, env);
		const staged = end(second);
		while (second.exitCode === null && ((await rowsStaged(project.run)) ?? 0) < rows * 0.3);
		second.kill('SIGKILL');
		await staged;

		const moments = momentsOf(kills - 2);
		for (const moment of moments) {
			const child = startProgram(goOn, env);
			const ended = end(child);
			await untilSent(sink, Math.floor(rows * moment), child);
			child.kill('SIGKILL');
			await ended;
		}
		const last = await end(startProgram([...goOn, '-o', 'json'], env));
		expect([last.code, JSON.parse(last.stdout)]).toEqual([
			0,
			expect.objectContaining({ state: 'released', staged: rows, messages: { sent: rows } }),
		]);

		const ids = sink.received.map(({ raw }) => messageIdIn(raw));
		expect(new Set(ids).size).toBe(rows);
		expect(new Set(sink.received.flatMap(({ to }) => to)).size).toBe(rows);
		expect(ids.length - rows).toBeLessThanOrEqual(window * (kills - 1));
		const written = (await readFile(results, 'utf8')).trimEnd().split('\r\n').slice(1);
		expect(written).toHaveLength(rows);
		expect(
			written.filter((line) => /^\d+,r\d+@example\.com,[0-9a-f-]{36},sent,250,/.test(line)),
		).toHaveLength(rows);
		const report = await project.json(['report']);
		expect(report).toMatchObject({ total: { sent: rows } });
		process.stderr.write(`sent ${rows}, repeated ${ids.length - rows} after ${kills} kills\n`);
		await sink.close();
	},
	timeoutMs,
);

/** Null: it was killed before it opened the job, and there is nothing to go on with. */
async function rowsStaged(
	run: (words: readonly string[]) => Promise<{ code: number; stdout: string }>,
): Promise<number | null> {
	const { code, stdout } = await run(['send', 'status', 'november', '-o', 'json']);
	if (code !== 0) return null;
	const { rows: staged } = JSON.parse(stdout) as { rows: number };
	return staged;
}

/** Shares of the whole, ascending and without a pattern, the same each time (Lehmer's generator). */
function momentsOf(count: number): number[] {
	let state = 20_261_121;
	const next = () => {
		state = (state * 48_271) % 2_147_483_647;
		return state / 2_147_483_647;
	};
	return Array.from({ length: count }, next).sort((a, b) => a - b);
}
