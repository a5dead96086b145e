import { Worker } from 'node:worker_threads';
import { afterEach, expect, it } from 'vitest';
import { createRequestThread, type RequestThread } from '../../src/threads/request-thread.js';

let thread: RequestThread<string, string> | null = null;
afterEach(() => thread?.close());

const source = `
const { parentPort, workerData } = require('node:worker_threads');
const rest = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const does = {
	answer: () => {},
	wait: () => rest(1500),
	waitForever: () => rest(Infinity),
	compute: () => { for (;;); },
};
parentPort.on('message', ([{ id, value }]) => {
	does[value]?.();
	parentPort.postMessage([{ id, kind: 'value', value }]);
	Atomics.add(workerData, 0, 1);
});
`;

/** The number of answers of a thread, which the test can read while it blocks the event loop. */
const answered = new Int32Array(new SharedArrayBuffer(4));

function open(deadlineMs: number): RequestThread<string, string> {
	thread = createRequestThread({
		name: 'asked',
		title: 'the thread',
		resourceLimits: {},
		deadlineMs,
		spawn: () => new Worker(source, { eval: true, workerData: answered }),
	});
	return thread;
}

it('the deadline for a thread does not pass while the thread waits for a CPU', async () => {
	expect(await open(1000).ask('wait')).toBe('wait');
});

it('the deadline for a thread passes if the thread computes for too long or waits forever', async () => {
	await expect(open(300).ask('compute')).rejects.toThrow('it took longer than 300 ms');
	await expect(open(20).ask('waitForever')).rejects.toThrow('it took longer than 20 ms');
});

it('the deadline for a thread does not pass while the process is blocked', async () => {
	const { ask } = open(100);
	await ask('answer');
	const before = Atomics.load(answered, 0);
	const answer = ask('answer');
	// The request is sent first. Then this thread is busy until the deadline has passed and the answer is there.
	for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate);
	const until = performance.now() + 500;
	while (performance.now() < until || Atomics.load(answered, 0) === before);
	expect(await answer).toBe('answer');
});
