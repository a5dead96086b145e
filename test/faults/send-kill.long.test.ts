/**
 * `send --csv` is killed at many moments while it stages, releases and sends, and is resumed each time. A sink in the
 * test must get every message, and a kill repeats at most the messages sent but not recorded. `MAILCTL_KILL_ROWS` and
 * `MAILCTL_KILLS` set another size.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isPostgres } from '../../src/store/url.js';
import { isBuilt, startProgram } from '../support/cli.js';
import { type Databases, describeDatabases, expectWhole } from '../support/databases.js';
import { asked, ended, seeded, timeLimit } from '../support/fault-points.js';
import { ask } from '../support/postgres.js';
import { makeProject } from '../support/project.js';
import { messageIdIn, type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

const rows = asked('MAILCTL_KILL_ROWS', 2_000);
const kills = asked('MAILCTL_KILLS', 4);
/** How many messages a kill may repeat: 100 unrecorded outcomes and 5 messages in flight. */
const window = 105;

async function untilSent(sink: SmtpSink, count: number, child: ChildProcess): Promise<void> {
	const gone = once(child, 'exit');
	await Promise.race([sink.until(count), gone]);
}

describeDatabases('send --csv', (databases) => {
	it.skipIf(!isBuilt)(
		`sends to ${rows} people despite ${kills} kills, and repeats at most ${window} mails per kill`,
		() => sendKilled(databases),
		timeLimit,
	);
});

async function sendKilled({ create }: Databases): Promise<void> {
	const sink = await startSmtpSink();
	const project = await makeProject({ smtp: sink.port, db: await create() });
	const lines = Array.from({ length: rows }, (_, row) => `r${row}@example.com,Reader ${row}\n`);
	const people = await project.file('people.csv', `email,name\n${lines.join('')}`);
	const results = join(project.folder, 'results.csv');
	const env = { HOME: project.folder };
	const consent = ['--yes', '--expect-count', String(rows)];
	const begin = [
		...['--db', project.db, 'send', '--from', 'news@example.com', '--csv', people, '--campaign', 'november'],
		...['--subject', 'News', '--text', 'Hi #name#', ...consent],
	];
	const goOn = ['--db', project.db, 'campaigns', 'resume', 'november', ...consent, '--results', results];

	const first = startProgram(begin, env);
	first.stderr?.once('data', () => first.kill('SIGKILL'));
	await ended(first);
	expect(sink.received).toHaveLength(0);

	const second = startProgram((await rowsStaged(project.run)) === null ? begin : goOn, env);
	const staged = ended(second);
	while (second.exitCode === null && ((await rowsStaged(project.run)) ?? 0) < rows * 0.3);
	second.kill('SIGKILL');
	await staged;

	let killed = 2;
	const moments = Array.from({ length: kills - 2 }, seeded()).sort((a, b) => a - b);
	for (const moment of moments) {
		const child = startProgram(goOn, env);
		const end = ended(child);
		await untilSent(sink, Math.floor(rows * moment), child);
		child.kill('SIGKILL');
		if ((await end).code === null) killed += 1;
	}
	await endLeases(project.db);
	const last = await ended(startProgram([...goOn, '-o', 'json'], env));
	expect([last.code, JSON.parse(last.stdout)]).toEqual([
		0,
		expect.objectContaining({ state: 'finished', staged: rows, messages: { sent: rows } }),
	]);

	const ids = sink.received.map(({ raw }) => messageIdIn(raw));
	expect(new Set(ids).size).toBe(rows);
	expect(new Set(sink.received.flatMap(({ to }) => to)).size).toBe(rows);
	expect(ids.length - rows).toBeLessThanOrEqual(window * (killed - 1));
	const written = (await readFile(results, 'utf8')).trimEnd().split('\r\n').slice(1);
	expect(written).toHaveLength(rows);
	expect(written.filter((line) => /^\d+,r\d+@example\.com,[0-9a-f-]{36},sent,250,/.test(line))).toHaveLength(
		rows,
	);
	const report = await project.json(['report']);
	expect(report).toMatchObject({ total: { sent: rows } });
	await expectWhole(project.db);
	process.stderr.write(`sent ${rows}, repeated ${ids.length - rows} after ${killed} kills\n`);
	await sink.close();
}

/** On PostgreSQL the leases of a dead process end only after two minutes, so the test ends them. */
async function endLeases(db: string): Promise<void> {
	if (isPostgres(db)) await ask(db, "UPDATE messages SET wake_at = 0 WHERE state = 'leased'");
}

async function rowsStaged(
	run: (words: readonly string[]) => Promise<{ code: number; stdout: string }>,
): Promise<number | null> {
	const { code, stdout } = await run(['campaigns', 'get', 'november', '-o', 'json']);
	if (code !== 0) return null;
	const { rows: staged } = JSON.parse(stdout) as { rows: number };
	return staged;
}
