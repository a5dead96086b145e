// After some slices, a thread reads the subscribers. If the thread ends, the process reads them itself.
import { mkdtemp } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { withWalkReader } from '../../../src/cli/connect/stores.js';
import { openStore } from '../../../src/store/open.js';
import { spawnThread } from '../../../src/threads/spawn.js';
import { newList } from '../../contract/store/fixture.js';
import { eventually } from '../../support/eventually.js';

/** Opens a list with one subscriber. `read` returns where it was read; `workers` are the started threads. */
async function openWalk(onWorker: (worker: Worker) => void = () => undefined) {
	const url = join(await mkdtemp(join(tmpdir(), 'mailctl-walk-')), 'mail.db');
	const store = await openStore(url, { clock: systemClock, mode: 'create' });
	const now = systemClock.now();
	await newList(store);
	await store.writes.createSubscriber({ list_id: 1, input: { email: 'ann@example.org' }, now });
	const workers: Worker[] = [];
	let here = 0;
	const counted: typeof store.reads.encodeSubscriberTuples = (command) => {
		here += 1;
		return store.reads.encodeSubscriberTuples(command);
	};
	const spawn: typeof spawnThread = (name, options) => {
		const worker = spawnThread(name, options);
		workers.push(worker);
		onWorker(worker);
		return worker;
	};
	const reads = { ...store.reads, encodeSubscriberTuples: counted };
	const { writes, queue } = store;
	const counting = { reads, writes, queue, close: () => store.close() };
	const walked = withWalkReader(counting, { url, keys: [], spawn });
	onTestFinished(() => walked.close());
	const slice = { list_id: 1, filter: {}, after: 0, limit: 10, keys: 'imported' } as const;
	const read = async () => {
		const before = here;
		expect(await walked.reads.encodeSubscriberTuples(slice)).toMatchObject({
			json: '[["ann@example.org","",true,null,{}]]',
		});
		return here === before ? 'thread' : 'process';
	};
	return { read, workers, walked };
}

describe.runIf(availableParallelism() > 1)('a thread that reads subscribers', () => {
	it('starts after the main thread has read nineteen slices of a list', async () => {
		const { read, workers } = await openWalk();
		for (let slice = 1; slice < 20; slice += 1) expect(await read()).toBe('process');
		expect(workers).toEqual([]);
		await eventually(async () => expect(await read()).toBe('thread'));
		expect(workers).toHaveLength(1);
	});

	it('is replaced by the main thread if it is terminated', async () => {
		const { read, workers, walked } = await openWalk();
		await eventually(async () => expect(await read()).toBe('thread'));
		const ended = workers[0]?.terminate();
		expect(await read()).toBe('process');
		await ended;
		expect(await read()).toBe('process');
		await walked.close();
	});

	it('is replaced by the main thread if it is terminated right after its start', async () => {
		const ended: Promise<number>[] = [];
		const { read, walked } = await openWalk((worker) => {
			worker.once('message', () => ended.push(worker.terminate()));
		});
		await eventually(async () => {
			await read();
			expect(ended).toHaveLength(1);
		});
		await ended[0];
		expect(await read()).toBe('process');
		await walked.close();
	});
});
