import { statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { WrappingKey } from '../../store/maintenance.js';
import { databaseFile, isPrivate } from '../../store/open.js';
import { driverOf, type Parts, type Reads } from '../../store/operations.js';
import type { Store } from '../../store/store.js';
import { isPostgres } from '../../store/url.js';
import type { spawnThread } from '../../threads/spawn.js';

interface WalkOptions {
	url: string;
	keys: readonly WrappingKey[];
	spawn?: typeof spawnThread;
}

const worthwhileSlices = 20;

/**
 * A thread takes over `encodeSubscriberTuples` after `worthwhileSlices` calls. If the thread fails, `store` runs the
 * failed call and all later calls. Pass a store that has just been opened.
 */
export function withWalkReader(store: Store, { url, ...options }: WalkOptions): Store {
	if (isPostgres(url) || isPrivate(url) || availableParallelism() < 2) return store;
	const file = identityOf(url);
	const isSameFile = () => file !== null && identityOf(url) === file;
	let slices = 0;
	let reader: Pick<Store, 'reads' | 'close'> | null = null;
	let hasFailed = false;
	let starting: Promise<void> | null = null;
	const start = async () => {
		if (!isSameFile()) return;
		const { openThreadedReader } = await import('../../threads/threaded-store.js');
		const onFailure = () => {
			hasFailed = true;
		};
		const opened = await openThreadedReader(url, { ...options, onFailure });
		if (isSameFile()) reader = opened;
		else await opened.close();
	};
	const encodeSubscriberTuples: Reads['encodeSubscriberTuples'] = async (command) => {
		slices += 1;
		if (slices === worthwhileSlices) starting = start().catch(() => undefined);
		if (reader === null || hasFailed) return store.reads.encodeSubscriberTuples(command);
		try {
			return await reader.reads.encodeSubscriberTuples(command);
		} catch (error) {
			if (!hasFailed) throw error;
			return store.reads.encodeSubscriberTuples(command);
		}
	};
	return {
		...store,
		reads: { ...store.reads, encodeSubscriberTuples },
		close: async () => {
			await starting;
			await reader?.close().catch(() => undefined);
			await store.close();
		},
	};
}

function identityOf(url: string): string | null {
	try {
		const { dev, ino } = statSync(databaseFile(url));
		return `${dev} ${ino}`;
	} catch {
		return null;
	}
}

/**
 * Reads from `empty` until a write creates the database or another process has created it (`isThere`). If the creation
 * fails, the write rejects, and the next write tries again. `close` also closes `empty`.
 */
export function storeMadeOnWrite(
	empty: Store,
	{ isThere, make }: { isThere: () => boolean; make: () => Promise<Store> },
): Store {
	let making: Promise<Store> | null = null;
	const madeStore = () => {
		making ??= make().catch((error: unknown) => {
			making = null;
			throw error;
		});
		return making;
	};
	const readStore = () => making ?? (isThere() ? madeStore() : empty);
	const part = <Part extends keyof Parts>(name: Part, storeOf: () => Store | Promise<Store>): Parts[Part] =>
		driverOf(name, async (operation, command, means) => {
			const { [name]: driver } = await storeOf();
			const run = driver[operation as keyof typeof driver] as (c: unknown, m: unknown) => Promise<unknown>;
			return run(command, means);
		});
	return {
		reads: part('reads', readStore),
		writes: part('writes', madeStore),
		queue: part('queue', madeStore),
		close: async () => {
			await empty.close();
			await (await making)?.close();
		},
	};
}
