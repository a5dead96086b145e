/** A long walk through a list: from a point on a thread reads, while the process makes lines of what it has read. */
import { availableParallelism } from 'node:os';
import type { WrappingKey } from '../../store/keys.js';
import { isPrivate } from '../../store/open.js';
import type { Reads, Store } from '../../store/store.js';
import { isPostgres } from '../../store/url.js';

/** Of a thousand rows: a shorter walk ends before a thread is there. */
const worthwhileSlices = 20;

/** The same store, whose `encodeSubscriberTuples` goes to a thread once it was called so often. */
export function withWalkReader(store: Store, { url, keys }: WalkOptions): Store {
	if (isPostgres(url) || isPrivate(url) || availableParallelism() < 2) return store;
	let slices = 0;
	let reader: Pick<Store, 'reads' | 'close'> | null = null;
	let starting: Promise<void> | null = null;
	/** What is read does not depend on who reads it. */
	const here = () => {
		reader = null;
	};
	const start = async () => {
		const { openThreadedReader } = await import('../../threads/threaded-store.js');
		reader = await openThreadedReader(url, { keys, onFailure: here });
	};
	const encodeSubscriberTuples: Reads['encodeSubscriberTuples'] = async (command) => {
		slices += 1;
		if (slices === worthwhileSlices) starting = start().catch(here);
		const used = reader;
		if (used === null) return store.reads.encodeSubscriberTuples(command);
		try {
			return await used.reads.encodeSubscriberTuples(command);
		} catch (error) {
			if (reader === used) throw error;
			return store.reads.encodeSubscriberTuples(command);
		}
	};
	return {
		...store,
		reads: { ...store.reads, encodeSubscriberTuples },
		close: async () => {
			await starting;
			await reader?.close();
			await store.close();
		},
	};
}

interface WalkOptions {
	url: string;
	/** That decrypt secrets. */
	keys: readonly WrappingKey[];
}
