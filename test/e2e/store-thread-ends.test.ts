// A thread of the store that ends: what becomes of the command whose thread it is.
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

/** A preload that does `what` with each thread of a store, as `this`. */
const preloadThat = (what: string) => `
const threads = require('node:worker_threads');
if (threads.isMainThread) {
	threads.Worker = class extends threads.Worker {
		constructor(file, options) {
			super(file, options);
			if (String(file).includes('store.thread')) { ${what} }
		}
	};
	require('node:module').syncBuiltinESMExports();
}
`;
const endsAtSignal = preloadThat("process.on('SIGUSR2', () => this.terminate())");
const endsSoon = preloadThat(`
	let answers = 0;
	this.on('message', () => {
		answers += 1;
		if (answers === 5) this.terminate().then(() => process.stderr.write('the thread has ended'));
	})
`);
const hasCores = availableParallelism() > 1;

it.runIf(hasCores)('ends a worker with 74, and the next run sends the rest', async () => {
	sink = await startSmtpSink();
	const { db, folder, file, json } = await makeProject({ smtp: sink.port });
	await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'asked']);
	const rows = Array.from({ length: readers }, (_, row) => `r${row}@example.org`);
	const csv = await file('readers.csv', `email\n${rows.join('\n')}\n`);
	await json(['subscribers', 'import', csv, '-l', '1']);
	const mail = ['--from', 'news@example.com', '--list', '1', '--subject', 'S', '--text', 'T'];
	await json(['send', ...mail, '--yes', '--expect-count', String(readers), '--no-wait']);

	const preload = `--require=${await file('ends.cjs', endsAtSignal)}`;
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
	// 100 that are not recorded, and a body on each of five connections.
	expect(arrived.length).toBeLessThanOrEqual(readers + 105);
});

it.runIf(hasCores)('of an export is missed by nobody: the process reads on by itself', async () => {
	const { db, folder, file, json, run } = await makeProject();
	await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'asked']);
	const rows = Array.from({ length: 60_000 }, (_, row) => `r${row}@example.org`);
	await json(['subscribers', 'import', await file('readers.csv', `email\n${rows.join('\n')}\n`), '-l', '1']);
	const preload = `--require=${await file('ends.cjs', endsSoon)}`;
	const words = ['--db', db, 'subscribers', 'export', '-l', '1', '--format', 'csv', '--fields', 'email'];
	const program = startProgram(words, { HOME: folder, NODE_OPTIONS: preload });
	const [exported, said, [code]] = await Promise.all([
		text(program.stdout),
		text(program.stderr),
		once(program, 'close'),
	]);
	expect({ code, said }).toEqual({ code: 0, said: expect.stringContaining('the thread has ended') });
	expect(exported).toBe(
		(await run(['subscribers', 'export', '-l', '1', '--format', 'csv', '--fields', 'email'])).stdout,
	);
	expect(exported.trim().split('\n').slice(1)).toEqual(rows);
});
