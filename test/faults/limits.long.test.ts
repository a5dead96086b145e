/**
 * Three workers on one database, of which some are killed. The witness is a server outside of them that notes when each
 * message was spoken of: a limit holds in any window, for all of them together.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';
import { bundleProgram } from '../support/fault-points.js';
import { createQueuedDatabase } from '../support/queued-database.js';
import { messageIdIn, startSmtpSink } from '../support/smtp-sink.js';

const program = await bundleProgram('worker-program');
const processes = 3;
const messages = 240;

/** The most in any time shorter than the window. */
function mostIn(times: readonly number[], windowMs: number): number {
	return Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + windowMs).length));
}

it('a limit holds in every window, with three workers of which two are killed', async () => {
	const times: number[] = [];
	const sink = await startSmtpSink({
		onRcptTo: (_address, _session, callback) => {
			times.push(performance.now());
			callback();
		},
	});
	const { path, ids } = await createQueuedDatabase(messages);
	const store = await openStore(path, { clock: systemClock, mode: 'existing' });
	const values = { send_limit: '60/2s', recipient_domain_limits: 'example.net=40/1s' };
	await store.writes.putSettings({ values, now: systemClock.now() });
	await store.close();
	const start = () =>
		spawn(process.execPath, [program, path, String(sink.port), '1500'], {
			stdio: ['ignore', 'ignore', 'inherit'],
		});
	const workers: ChildProcess[] = Array.from({ length: processes }, start);
	for (const [index, reached] of [messages / 4, messages / 2].entries()) {
		await sink.until(reached);
		workers[index]?.kill('SIGKILL');
		workers.push(start());
	}
	await Promise.all(workers.map((worker) => worker.exitCode ?? worker.signalCode ?? once(worker, 'exit')));
	await sink.close();
	expect(new Set(sink.received.map(({ raw }) => messageIdIn(raw).split('@')[0]))).toEqual(new Set(ids));
	expect(mostIn(times, 2_000)).toBeLessThanOrEqual(60);
	expect(mostIn(times, 1_000)).toBeLessThanOrEqual(40);
});
