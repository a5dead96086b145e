/**
 * The store for a process that answers requests, or sends: one thread writes, another reads, and this one never waits
 * for a lock, a disk or a scan.
 */
import type { Worker } from 'node:worker_threads';
import { StoreError } from '../api/errors.js';
import { databaseFile, isPrivate, type OpenOptions } from '../store/open.js';
import type { Run } from '../store/operations.js';
import type { Store } from '../store/store.js';
import {
	type Answer,
	isStopped,
	type OpenCommand,
	type Operation,
	parseFailure,
	remoteQueue,
	remoteReads,
	remoteWrites,
} from './remote.js';
import { spawnThread } from './spawn.js';

export interface ThreadedOptions extends OpenOptions {
	/** A thread has ended unexpectedly: every call rejects. Called once. */
	onFailure?: (error: StoreError) => void;
	isOneThread?: boolean;
	spawn?: typeof spawnThread;
}

/** V8's default lets the young generation grow to 48 MiB, of which rows and answers need a few. */
const resourceLimits = { maxYoungGenerationSizeMb: 12 };

/**
 * Every later read sees an acknowledged write. Heartbeats use the machine's clock, because `options.clock` cannot be
 * copied.
 */
export async function openThreadedStore(url: string, options: ThreadedOptions): Promise<Store> {
	databaseFile(url);
	const { onFailure, isOneThread = false, spawn = spawnThread, clock: _, ...opening } = options;
	let failure: StoreError | null = null;
	const fail = (error: StoreError) => {
		if (failure === null) onFailure?.(error);
		failure ??= error;
	};
	const start = (name: string) => openChannel(spawn('store', { resourceLimits }), { name, onFailure: fail });
	const writer = start('writing thread');
	const reader = isOneThread || isPrivate(url) ? writer : start('reading thread');
	const channels = [...new Set([reader, writer])];
	await openAll([
		[writer, { role: 'writer', url, options: { upkeep: 'apart', ...opening } }],
		...(reader === writer ? [] : [[reader, { role: 'reader', url, options: opening }] as const]),
	]);
	let closing: Promise<void> | null = null;
	const through = (channel: Channel, part: Operation['part']): Run => {
		return async (method, command, means) => {
			if (failure !== null) throw failure;
			if (closing !== null) throw new StoreError('io', `${url} is closed`);
			return channel.call({ part, method, command }, means?.signal);
		};
	};
	return {
		reads: remoteReads(through(reader, 'reads')),
		writes: remoteWrites(through(writer, 'writes')),
		queue: remoteQueue(through(writer, 'queue')),
		close: () => {
			closing ??= closeAll(channels, () => failure !== null);
			return closing;
		},
	};
}

export async function openThreadedReader(
	url: string,
	{ onFailure, spawn = spawnThread, ...options }: Pick<ThreadedOptions, 'keys' | 'onFailure' | 'spawn'>,
): Promise<Pick<Store, 'reads' | 'close'>> {
	databaseFile(url);
	const channel = openChannel(spawn('store', { resourceLimits }), {
		name: 'reading thread',
		onFailure: (error) => onFailure?.(error),
	});
	await openAll([[channel, { role: 'reader', url, options: { mode: 'existing', ...options } }]]);
	return {
		reads: remoteReads((method, command, means) =>
			channel.call({ part: 'reads', method, command }, means?.signal),
		),
		close: () => closeAll([channel], () => false),
	};
}

async function openAll(all: readonly (readonly [Channel, OpenCommand])[]): Promise<void> {
	try {
		for (const [channel, command] of all) await channel.call({ part: 'thread', method: 'open', command });
	} catch (error) {
		await endAll(all.map(([channel]) => channel));
		throw error;
	}
}

async function closeAll(channels: readonly Channel[], isFailed: () => boolean): Promise<void> {
	try {
		// The last to close copies the log back and removes it, so the writer comes last.
		for (const channel of channels) await channel.call({ part: 'thread', method: 'close', command: null });
	} catch (error) {
		if (!isFailed()) throw error;
	} finally {
		await endAll(channels);
	}
}

async function endAll(channels: readonly Channel[]): Promise<void> {
	await Promise.all(channels.map((channel) => channel.end()));
}

interface Channel {
	call(operation: Omit<Operation, 'id' | 'isStoppable'>, signal?: AbortSignal): Promise<unknown>;
	end(): Promise<void>;
}

interface Waiting {
	resolve(value: unknown): void;
	reject(error: unknown): void;
}

function openChannel(
	worker: Worker,
	{ name, onFailure }: { name: string; onFailure: (error: StoreError) => void },
): Channel {
	// Not a Map: tables that it outgrew led V8 to later ones, so that answers lived until a full collection.
	const waiting: Record<number, Waiting> = {};
	let queued: Operation[] = [];
	let lastId = 0;
	let ended: StoreError | null = null;

	const take = (id: number): Waiting | undefined => {
		const asker = waiting[id];
		delete waiting[id];
		return asker;
	};

	const send = (operations: readonly Operation[]) => {
		try {
			worker.postMessage(operations);
		} catch (error) {
			// One of them cannot be copied; the others are sent one by one.
			if (operations.length > 1) for (const operation of operations) send([operation]);
			else for (const { id } of operations) take(id)?.reject(error);
		}
	};

	const sendQueued = () => {
		const operations = queued;
		queued = [];
		send(operations);
	};

	const onAnswers = (answers: readonly Answer[]) => {
		for (const answer of answers) {
			const asker = take(answer.id);
			if (answer.kind === 'value') asker?.resolve(answer.value);
			else asker?.reject(parseFailure(answer.failure));
		}
	};

	const stop = (why: string, cause: unknown) => {
		if (ended !== null) return null;
		ended = new StoreError('io', why, { cause });
		for (const id of Object.keys(waiting)) take(Number(id))?.reject(ended);
		return ended;
	};

	const fail = (cause: unknown) => {
		const error = stop(`the ${name} has failed: ${cause instanceof Error ? cause.message : cause}`, cause);
		if (error !== null) onFailure(error);
	};

	worker
		.on('message', onAnswers)
		.on('messageerror', fail)
		.on('error', fail)
		.on('exit', (code) => fail(`it ended with ${code}`));

	const ask = (operation: Omit<Operation, 'id'>) =>
		new Promise<unknown>((resolve, reject) => {
			if (ended !== null) return reject(ended);
			lastId += 1;
			waiting[lastId] = { resolve, reject };
			// A message costs more than its content, so it takes the work of this tick.
			if (queued.length === 0) setImmediate(sendQueued);
			queued.push({ id: lastId, ...operation });
		});

	const askUntil = async (operation: Omit<Operation, 'id'>, signal: AbortSignal) => {
		signal.throwIfAborted();
		const asked = ask({ ...operation, isStoppable: true });
		const id = lastId;
		const stopIt = () => void ask({ part: 'thread', method: 'stop', command: id }).catch(() => undefined);
		signal.addEventListener('abort', stopIt, { once: true });
		try {
			return await asked;
		} catch (error) {
			throw isStopped(error) ? signal.reason : error;
		} finally {
			signal.removeEventListener('abort', stopIt);
		}
	};

	return {
		call: (operation, signal) => (signal === undefined ? ask(operation) : askUntil(operation, signal)),
		end: async () => {
			stop(`the ${name} is closed`, null);
			await worker.terminate();
		},
	};
}
