/**
 * A worker that is stopped beyond its lease, and continues after another worker sent the message, records nothing. The
 * processes, signals and database are real.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';
import { eventually } from '../support/eventually.js';
import { bundleProgram } from '../support/fault-points.js';
import { createQueuedDatabase } from '../support/queued-database.js';
import { type Fault, startFaultServer } from '../support/smtp-fault.js';

const program = await bundleProgram('worker-program');
const leaseMs = 400;

function start(path: string, port: number): { worker: ChildProcess; ended: Promise<string> } {
	const worker = spawn(process.execPath, [program, path, String(port), String(leaseMs)], {
		stdio: ['ignore', 'pipe', 'inherit'],
	});
	onTestFinished(() => void worker.kill('SIGKILL'));
	let said = '';
	worker.stdout?.on('data', (chunk: Buffer) => {
		said += chunk.toString();
	});
	return { worker, ended: new Promise((resolve) => worker.on('exit', () => resolve(said))) };
}

/** Stops the worker outside a transaction, because inside one it would block all other writers. */
async function stopBetweenWrites(worker: ChildProcess, path: string): Promise<void> {
	const db = new Database(path, { timeout: 0 });
	onTestFinished(() => void db.close());
	await eventually(() => {
		worker.kill('SIGSTOP');
		try {
			db.transaction(() => undefined).immediate();
		} catch (within) {
			worker.kill('SIGCONT');
			throw within;
		}
	});
}

const answers: [string, Fault][] = [
	['that it accepts the message', { answer: '250 2.0.0 Taken twice' }],
	['that the user is unknown', { answer: '550 5.1.1 No such user' }],
	['nothing', { drop: true }],
];

it.each(
	answers,
)('a worker whose lease has ended records nothing, even if the mail server then answers %s', async (_what, late) => {
	const { promise: later, resolve: answer } = withResolvers<Fault>();
	const server = await startFaultServer({
		on: (phase, _line, { number }) => (phase === 'dot' && number === 1 ? { later } : undefined),
	});
	onTestFinished(() => server.close());
	const { path, ids } = await createQueuedDatabase(1);
	const first = start(path, server.port);
	await eventually(() => expect(server.bodies).toHaveLength(1));
	await stopBetweenWrites(first.worker, path);
	const second = start(path, server.port);
	await eventually(() => expect(server.bodies).toHaveLength(2));
	expect(JSON.parse(await second.ended)).toMatchObject({ counts: { sent: 1 } });
	answer(late);
	first.worker.kill('SIGCONT');
	expect(JSON.parse(await first.ended)).toMatchObject({
		counts: { sent: 0, deferred: 0, bounced: 0, failed: 0, uncertain: 0 },
	});
	const store = await openStore(path, { clock: systemClock, mode: 'existing' });
	const found = await store.reads.getMessage({ id: ids[0] ?? '' });
	const { suppressions } = await store.reads.status();
	await store.close();
	expect(found?.message).toMatchObject({ state: 'sent', attempts: 1, last_reply: '250 2.0.0 Taken' });
	expect(found?.attempts).toMatchObject([{ number: 1, outcome: 'sent', text: 'Taken' }]);
	expect(suppressions).toBe(0);
	const messageIds = server.bodies.map((body) => /^Message-ID: (.*)$/im.exec(body)?.[1]);
	expect(messageIds[0]).toBe(messageIds[1]);
});

function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
	let settle: (value: T) => void = () => undefined;
	const promise = new Promise<T>((resolve) => {
		settle = resolve;
	});
	return { promise, resolve: (value) => settle(value) };
}
