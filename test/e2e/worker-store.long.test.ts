import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { text } from 'node:stream/consumers';
import { afterEach, expect, it } from 'vitest';
import { startProgram } from '../support/cli.js';
import { makeProject } from '../support/project.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

let sink: SmtpSink | null = null;
afterEach(() => sink?.close());

const readers = 2_000;

/** Terminates the store's thread on SIGUSR2. */
const killer = `
const threads = require('node:worker_threads');
if (threads.isMainThread) {
	threads.Worker = class extends threads.Worker {
		constructor(file, options) {
			super(file, options);
			if (String(file).includes('store.thread')) process.on('SIGUSR2', () => this.terminate());
		}
	};
	require('node:module').syncBuiltinESMExports();
}
`;

it.runIf(availableParallelism() > 1)(
	'a worker ends with 74 if its store fails, and the next run sends the rest',
	async () => {
		sink = await startSmtpSink();
		const { db, folder, file, json } = await makeProject({ smtp: sink.port });
		await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'asked']);
		const rows = Array.from({ length: readers }, (_, row) => `r${row}@example.org`);
		const csv = await file('readers.csv', `email\n${rows.join('\n')}\n`);
		await json(['subscribers', 'import', csv, '-l', '1']);
		const mail = ['--from', 'news@example.com', '--list', '1', '--subject', 'S', '--text', 'T'];
		await json(['send', ...mail, '--yes', '--expect-count', String(readers), '--no-wait']);

		const preload = `--require=${await file('killer.cjs', killer)}`;
		const work = (...words: string[]) =>
			startProgram(['--db', db, 'worker', ...words], { HOME: folder, NODE_OPTIONS: preload });
		const broken = work();
		const said = text(broken.stderr);
		await sink.until(500);
		broken.kill('SIGUSR2');
		const [code] = await once(broken, 'close');
		expect({ code, said: await said }).toEqual({
			code: 74,
			said: expect.stringMatching(/^error: the writing thread has failed/m),
		});

		const [last] = await once(work('--drain', '-q'), 'close');
		expect(last).toBe(0);
		const arrived = sink.received.map(({ to }) => to[0]);
		expect(new Set(arrived)).toEqual(new Set(rows));
		// 100 messages may be unrecorded, and five connections may each be sending one.
		expect(arrived.length).toBeLessThanOrEqual(readers + 105);
	},
);
