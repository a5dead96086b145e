/**
 * The store for a process that serves or sends. One thread writes and another reads, so the main thread never waits for
 * a lock, a disk or a scan.
 */
import type { Worker } from 'node:worker_threads';
import { StoreError } from '../api/errors.js';
import { databaseFile, isPrivate, type OpenOptions } from '../store/open.js';
import { driverOf, type Parts, type Run } from '../store/operations.js';
import type { Store } from '../store/store.js';
import { type Answer, type OpenCommand, type Operation, pack, parseFailure, unpack } from './remote.js';
import { spawnThread } from './spawn.js';

export interface ThreadedOptions extends OpenOptions {
	onFailure?: (error: StoreError) => void;
	isOneThread?: boolean;
	spawn?: typeof spawnThread;
}

/** V8's young generation grows to 48 MiB by default; rows and answers need less. */
const resourceLimits = { maxYoungGenerationSizeMb: 12 };

/** Reads see all acknowledged writes. Heartbeats use the machine's clock, because `options.clock` cannot be copied. */
export async function openThreadedStore(url: string, options: ThreadedOptions): Promise<Store> {
	databaseFile(url);
	const { onFailure, isOneThread = false, spawn = spawnThread, clock: _, ...opening } = options;
	let failure: StoreError | null = null;
	const fail = (error: StoreError) => {
		if (failure === null) onFailure?.(error);
		failure ??= error;
	};
	const start = (name: string) => new Channel(spawn('store', { resourceLimits }), name, fail);
	const writer = start('writing thread');
	const reader = isOneThread || isPrivate(url) ? writer : start('reading thread');
	await openAll([
		[writer, { role: 'writer', url, options: { upkeep: 'apart', ...opening } }],
		...(reader === writer ? [] : [[reader, { role: 'reader', url, options: opening }] as const]),
	]);
	let closing: Promise<void> | null = null;
	const part = <Part extends keyof Parts>(name: Part, channel: Channel): Parts[Part] => {
		const run = channel.runnerOf(name);
		return driverOf(name, async (method, command, means) => {
			if (failure !== null) throw failure;
			if (closing !== null) throw new StoreError('io', `${url} is closed`);
			return run(method, command, means);
		});
	};
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
	const fail = (error: StoreError) => onFailure?.(error);
	const channel = new Channel(spawn('store', { resourceLimits }), 'reading thread', fail);
	await openAll([[channel, { role: 'reader', url, options: { mode: 'existing', ...options } }]]);
	return {
		reads: driverOf('reads', channel.runnerOf('reads')),
		close: () => closeAll([channel], () => false),
	};
}

async function openAll(all: readonly (readonly [Channel, OpenCommand])[]): Promise<void> {
	try {
		for (const [channel, command] of all) await channel.ask({ part: 'thread', method: 'open', command });
	} catch (error) {
		await Promise.all(all.map(([channel]) => channel.end()));
		throw error;
	}
}

async function closeAll(channels: readonly Channel[], isFailed: () => boolean): Promise<void> {
	try {
		// The last connection to close checkpoints and removes the log, so close the writer last.
		for (const channel of channels) await channel.ask({ part: 'thread', method: 'close', command: null });
	} catch (error) {
		if (!isFailed()) throw error;
	} finally {
		await Promise.all(channels.map((channel) => channel.end()));
	}
}

interface Waiting {
	resolve(value: unknown): void;
	reject(error: unknown): void;
}

class Channel {
	readonly #worker: Worker;
	readonly #name: string;
	/** An object, because a Map that had grown made V8 keep answers until a full collection. */
	readonly #waiting: Record<number, Waiting> = {};
	#queued: Operation[] = [];
	#lastId = 0;
	#ended: StoreError | null = null;

	constructor(worker: Worker, name: string, onFailure: (error: StoreError) => void) {
		this.#worker = worker;
		this.#name = name;
		const fail = (cause: unknown) => {
			const error = this.#stop(`has failed: ${cause instanceof Error ? cause.message : cause}`, cause);
			if (error !== null) onFailure(error);
		};
		worker
			.on('message', (answers: readonly Answer[]) => this.#take(answers))
			.on('messageerror', fail)
			.on('error', fail)
			.on('exit', (code) => fail(`it ended with ${code}`));
	}

	/** Rejects with the operation's error, or with `StoreError` "io" if the thread has ended. */
	ask(operation: Omit<Operation, 'id'>): Promise<unknown> {
		return new Promise<unknown>((resolve, reject) => {
			if (this.#ended !== null) return reject(this.#ended);
			this.#lastId += 1;
			this.#waiting[this.#lastId] = { resolve, reject };
			// A message costs more than its content, so one carries all operations of this tick.
			if (this.#queued.length === 0) setImmediate(() => this.#send(this.#queued.splice(0)));
			this.#queued.push({ id: this.#lastId, ...operation });
		});
	}

	runnerOf(part: keyof Parts): Run {
		return async (method, command, means) => {
			const operation = { part, method, command: pack(method, command) };
			const { signal } = means ?? {};
			const answer = signal === undefined ? this.ask(operation) : this.#askUntil(operation, signal);
			return unpack(method, await answer);
		};
	}

	async end(): Promise<void> {
		this.#stop('is closed', null);
		await this.#worker.terminate();
	}

	async #askUntil(operation: Omit<Operation, 'id'>, signal: AbortSignal): Promise<unknown> {
		signal.throwIfAborted();
		const asked = this.ask({ ...operation, isStoppable: true });
		const command = this.#lastId;
		const stop = () => void this.ask({ part: 'thread', method: 'stop', command }).catch(() => undefined);
		signal.addEventListener('abort', stop, { once: true });
		try {
			return await asked;
		} catch (error) {
			throw error instanceof Error && error.name === 'Stopped' ? signal.reason : error;
		} finally {
			signal.removeEventListener('abort', stop);
		}
	}

	#send(operations: readonly Operation[]): void {
		try {
			this.#worker.postMessage(operations);
		} catch (error) {
			// If one operation cannot be copied, send the others one by one.
			if (operations.length > 1) for (const operation of operations) this.#send([operation]);
			else for (const { id } of operations) this.#waiterOf(id)?.reject(error);
		}
	}

	#take(answers: readonly Answer[]): void {
		for (const answer of answers) {
			const waiter = this.#waiterOf(answer.id);
			if (answer.kind === 'value') waiter?.resolve(answer.value);
			else waiter?.reject(parseFailure(answer.failure));
		}
	}

	#waiterOf(id: number): Waiting | undefined {
		const waiter = this.#waiting[id];
		delete this.#waiting[id];
		return waiter;
	}

	#stop(why: string, cause: unknown): StoreError | null {
		if (this.#ended !== null) return null;
		this.#ended = new StoreError('io', `the ${this.#name} ${why}`, { cause });
		for (const id of Object.keys(this.#waiting)) this.#waiterOf(Number(id))?.reject(this.#ended);
		return this.#ended;
	}
}
