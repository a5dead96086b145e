/**
 * The store for a process that answers requests, or sends: one thread writes, another reads, and this one never waits
 * for a lock, a disk or a scan. Only for files: a database in memory has one thread for both.
 */

import { StoreError } from '../api/errors.js';
import { databaseFile, isPrivate, type OpenOptions } from '../store/open.js';
import type { Run } from '../store/operations.js';
import type { Store } from '../store/store.js';
import { type Channel, openChannel } from './channel.js';
import { type OpenCommand, type Operation, remoteQueue, remoteReads, remoteWrites } from './remote.js';
import { spawnThread } from './spawn.js';

export interface ThreadedOptions extends OpenOptions {
	/** A thread has ended unexpectedly: the store is unusable, every call rejects. Called once. */
	onFailure?: (error: StoreError) => void;
	/** One does both, for a process that reads little. */
	isOneThread?: boolean;
	/** Starts a thread by the name of its entry; `spawnThread` when absent. */
	spawn?: typeof spawnThread;
}

/** V8's default lets the young generation of a busy thread grow to 48 MiB, of which rows and answers need a few. */
const resourceLimits = { maxYoungGenerationSizeMb: 12 };

/**
 * Rejects as `openStore` does. Every later read sees an acknowledged write. Commands carry their own `now`; heartbeats
 * use the machine's clock, because `options.clock` cannot be copied. Tends the log and deletes expired data, unless
 * `options.upkeep` is `with_commits`.
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
	try {
		await open(writer, { role: 'writer', url, options: { upkeep: 'apart', ...opening } });
		if (reader !== writer) await open(reader, { role: 'reader', url, options: opening });
	} catch (error) {
		await endAll(channels);
		throw error;
	}
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

/**
 * A connection that only reads, in a thread of its own, beside a store that is open. Rejects as `openReader` does.
 * `onFailure`: the thread has ended unexpectedly, every call rejects.
 */
export async function openThreadedReader(
	url: string,
	{ onFailure, spawn = spawnThread, ...options }: Pick<ThreadedOptions, 'keys' | 'onFailure' | 'spawn'>,
): Promise<Pick<Store, 'reads' | 'close'>> {
	databaseFile(url);
	const channel = openChannel(spawn('store', { resourceLimits }), {
		name: 'reading thread',
		onFailure: (error) => onFailure?.(error),
	});
	try {
		await open(channel, { role: 'reader', url, options: { mode: 'existing', ...options } });
	} catch (error) {
		await channel.end();
		throw error;
	}
	return {
		reads: remoteReads((method, command, means) =>
			channel.call({ part: 'reads', method, command }, means?.signal),
		),
		close: () => closeAll([channel], () => false),
	};
}

async function open(channel: Channel, command: OpenCommand): Promise<void> {
	await channel.call({ part: 'thread', method: 'open', command });
}

async function closeAll(channels: readonly Channel[], isFailed: () => boolean): Promise<void> {
	try {
		// The writer last: the last to close copies the log back and removes it.
		for (const channel of channels) await channel.call({ part: 'thread', method: 'close', command: null });
	} catch (error) {
		// The owner already knows of a thread that has failed.
		if (!isFailed()) throw error;
	} finally {
		await endAll(channels);
	}
}

async function endAll(channels: readonly Channel[]): Promise<void> {
	await Promise.all(channels.map((channel) => channel.end()));
}
