/**
 * A PostgreSQL server is killed and restarted at many moments of an import and a send. The counts must add up,
 * everybody gets the message, and a kill repeats at most the messages sent but not recorded. `MAILCTL_KILL_ROWS` and
 * `MAILCTL_KILLS` set another size.
 */
import type { ChildProcess } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { cli, isBuilt, makeHome, startProgram } from '../support/cli.js';
import { type CountingSink, startCountingSink } from '../support/counting-sink.js';
import { expectWhole } from '../support/databases.js';
import { eventually } from '../support/eventually.js';
import { asked, type Ended, ended, seeded, timeLimit } from '../support/fault-points.js';
import {
	expectedPeople,
	expectImported,
	expectPeople,
	prepareImport,
	totalsOf,
} from '../support/import-file.js';
import { ask, canRunPostgres, type OwnPostgres, startOwn } from '../support/postgres.js';
import { serveDatabase } from '../support/serving.js';

const rows = asked('MAILCTL_KILL_ROWS', 4_000);
const kills = asked('MAILCTL_KILLS', 4);
const people = expectedPeople(rows);
/** How many messages a kill may repeat: 100 unrecorded outcomes and 5 messages in flight. */
const window = 105;

const importing = (file: string) =>
	['subscribers', 'import', file, '-l', '1', '-o', 'json'].concat('--batch-size', '100');
const consent = ['--yes', '--expect-count', String(people), '-o', 'json'];
const mail = ['--from', 'news@example.com', '--subject', 'News', '--text', 'Hi #unsubscribe_url#'];

describe.skipIf(!canRunPostgres() || !isBuilt)('a PostgreSQL server that is killed', () => {
	let server: OwnPostgres;
	beforeAll(async () => {
		server = await startOwn();
	});
	afterAll(() => server.stop());

	async function killedWhile(
		start: (isFirst: boolean) => ChildProcess,
		done: () => Promise<number>,
		{ isOver }: { isOver: (end: Ended) => boolean },
	): Promise<Ended> {
		const moments = Array.from({ length: kills / 2 }, seeded()).sort((one, other) => one - other);
		let child = start(true);
		let end = ended(child);
		let met = 0;
		const isRunning = () => child.exitCode === null && child.signalCode === null;
		for (const moment of moments) {
			while (isRunning() && (await done()) < moment * 0.9);
			if (isRunning()) met += 1;
			await server.kill();
			await server.restart();
			if (isRunning() || isOver(await end)) continue;
			child = start(false);
			end = ended(child);
		}
		let last = await end;
		for (let tries = 0; !isOver(last) && tries < 5; tries += 1) last = await ended(start(false));
		expect(met).toBeGreaterThanOrEqual(moments.length / 2);
		return last;
	}

	async function reaching() {
		const reached = new Set<string>();
		const sink = await startCountingSink((to) => reached.add(to));
		onTestFinished(sink.close);
		return { reached, sink };
	}

	const count = async (db: string, text: string) => Number((await ask(db, text))[0]?.['n']);
	const imported = async (db: string) => (await count(db, 'SELECT count(*) AS n FROM subscribers')) / people;
	const staged = async (db: string) => (await count(db, 'SELECT count(*) AS n FROM messages')) / people;

	async function expectSent(db: string, { reached, sink }: { reached: Set<string>; sink: CountingSink }) {
		expect(reached.size).toBe(people);
		expect(sink.received() - people).toBeLessThanOrEqual((window * kills) / 2);
		await expectWhole(db);
		const { stdout } = await cli(['--db', db, 'report', '-o', 'json']);
		expect(JSON.parse(stdout)).toMatchObject({ total: { sent: people } });
		process.stderr.write(`${people} people reached, ${sink.received() - people} messages repeated\n`);
	}

	it(
		'stores each person once, and each message is sent once, while commands use it',
		async () => {
			const { file, db } = await prepareImport(await server.createDatabase(), rows);
			const home = await makeHome();
			const run = (...words: string[]) => startProgram(['--db', db, ...words], { HOME: home });
			const end = await killedWhile(
				() => run(...importing(file), '--resume'),
				() => imported(db),
				{ isOver: ({ code }) => code === 9 },
			);
			await expectImported(file, rows, totalsOf(end));
			await expectPeople(db, rows);

			const there = await reaching();
			const { sink } = there;
			await ended(
				run('engine', 'init', '--smtp', `smtp://127.0.0.1:${sink.port}`, '--sender', 'news@example.com'),
			);
			const sent = await killedWhile(
				(isFirst) =>
					isFirst
						? run('send', '--list', 'Readers', '--bulk', '--campaign', 'november', ...mail, ...consent)
						: run('campaigns', 'resume', 'november', ...consent),
				async () => ((await staged(db)) + sink.received() / people) / 2,
				{ isOver: ({ code }) => code === 0 },
			);
			expect([sent.code, sent.code === 0 ? '' : sent.stderr]).toEqual([0, '']);
			await expectSent(db, there);
		},
		timeLimit,
	);

	it(
		'stores each person once, and each message is sent once, while `serve` uses it and reconnects',
		async () => {
			const { file, db } = await prepareImport(await server.createDatabase(), rows);
			const there = await reaching();
			const { sink } = there;
			const home = await makeHome();
			const smtp = `smtp://127.0.0.1:${sink.port}`;
			await cli(['--db', db, 'engine', 'init', '--smtp', smtp, '--sender', 'news@example.com']);
			const serving = await serveDatabase(db);
			onTestFinished(async () => void (await serving.stop('SIGKILL')));
			const run = (...words: string[]) =>
				startProgram(['--base-url', serving.url, ...words], { HOME: home, MAILCTL_TOKEN: serving.token });
			const end = await killedWhile(
				() => run(...importing(file), '--resume'),
				() => imported(db),
				{ isOver: ({ code }) => code === 9 },
			);
			await expectImported(file, rows, totalsOf(end));
			await expectPeople(db, rows);

			const sending = ['send', '--list', 'Readers', '--bulk', '--campaign', 'november', ...mail, ...consent];
			const sent = await killedWhile(
				() => run(...sending),
				async () => ((await staged(db)) + sink.received() / people) / 2,
				{ isOver: ({ code }) => code === 0 },
			);
			expect([sent.code, sent.code === 0 ? '' : sent.stderr]).toEqual([0, '']);
			await eventually(() => expect(there.reached.size).toBe(people));
			expect(await serving.stop()).toBe(0);
			await expectSent(db, there);
		},
		timeLimit,
	);
});
