import { statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { WrappingKey } from '../../store/keys.js';
import { databaseFile, isPrivate } from '../../store/open.js';
import type { Reads, Store } from '../../store/store.js';
import { isPostgres } from '../../store/url.js';
import type { spawnThread } from '../../threads/spawn.js';

interface WalkOptions {
	url: string;
	keys: readonly WrappingKey[];
	spawn?: typeof spawnThread;
}

const worthwhileSlices = 20;

/**
 * The same store, whose `encodeSubscriberTuples` goes to a thread once it was called so often. For a store that was
 * opened just now. Without its thread the store reads on by itself.
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
