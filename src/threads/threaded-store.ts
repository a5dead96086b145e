/**
 * The store for a process that serves or sends. One thread writes and another reads, so the main thread never waits for
 * a lock, a disk or a scan.
 */
import { StoreError } from '../api/errors.js';
import { databaseFile, isPrivate } from '../store/open.js';
import { driverOf, type Parts } from '../store/operations.js';
import type { OpenOptions } from '../store/sqlite/store.js';
import type { Store } from '../store/store.js';
import { Channel } from './channel.js';
import { spawnThread } from './spawn.js';
import type { OpenCommand } from './store.thread.js';

export interface ThreadedOptions extends OpenOptions {
	onFailure?: (error: StoreError) => void;
	isOneThread?: boolean;
	spawn?: typeof spawnThread;
}

/** V8's young generation grows to 48 MiB by default; rows and answers need less. */
const resourceLimits = { maxYoungGenerationSizeMb: 12 };

/** Reads see all acknowledged writes. The clock cannot be sent to a thread, so threads use the machine's. */
export async function openThreadedStore(url: string, options: ThreadedOptions): Promise<Store> {
	databaseFile(url);
	const { onFailure, isOneThread = false, spawn = spawnThread, clock: _, ...opening } = options;
	let failure: StoreError | null = null;
	const fail = (error: StoreError) => {
		if (failure === null) onFailure?.(error);
		failure ??= error;
	};
	const writer = start(spawn, 'writing thread', fail);
	const reader = isOneThread || isPrivate(url) ? writer : start(spawn, 'reading thread', fail);
	await openAll([
		[writer, { role: 'writer', url, options: { upkeep: 'apart', ...opening } }],
		...(reader === writer ? [] : [[reader, { role: 'reader', url, options: opening }] as const]),
	]);
	let closing: Promise<void> | null = null;
	const part = <Part extends keyof Parts>(name: Part, channel: Channel): Parts[Part] =>
		driverOf(name, async (method, command, means) => {
			if (failure !== null) throw failure;
			if (closing !== null) throw new StoreError('io', `${url} is closed`);
			return channel.ask(method, command, means?.signal);
		});
	return {
		reads: part('reads', reader),
		writes: part('writes', writer),
		queue: part('queue', writer),
		close: () => {
			closing ??= closeAll([...new Set([reader, writer])], () => failure !== null);
			return closing;
		},
	};
}

export async function openThreadedReader(
	url: string,
	{ onFailure, spawn = spawnThread, ...options }: Pick<ThreadedOptions, 'keys' | 'onFailure' | 'spawn'>,
): Promise<Pick<Store, 'reads' | 'close'>> {
	databaseFile(url);
	const channel = start(spawn, 'reading thread', (error) => onFailure?.(error));
	await openAll([[channel, { role: 'reader', url, options: { mode: 'existing', ...options } }]]);
	return {
		reads: driverOf('reads', (method, command, means) => channel.ask(method, command, means?.signal)),
		close: () => closeAll([channel], () => false),
	};
}

function start(spawn: typeof spawnThread, name: string, onFailure: (error: StoreError) => void) {
	const failed = (why: string, cause: unknown) => new StoreError('io', `the ${name} ${why}`, { cause });
	return new Channel(spawn('store', { resourceLimits }), { failed, onFailure });
}

async function openAll(all: readonly (readonly [Channel, OpenCommand])[]): Promise<void> {
	try {
		for (const [channel, command] of all) await channel.ask('open', command);
	} catch (error) {
		await Promise.all(all.map(([channel]) => channel.end()));
		throw error;
	}
}

async function closeAll(channels: readonly Channel[], isFailed: () => boolean): Promise<void> {
	try {
		// Close the writer last, because the connection that closes last checkpoints the log and removes it.
		for (const channel of channels) await channel.ask('close', null);
	} catch (error) {
		if (!isFailed()) throw error;
	} finally {
		await Promise.all(channels.map((channel) => channel.end()));
	}
}
