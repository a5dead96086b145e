/** All records of a collection, lazily, with the count its first page told. */
import type { Call, PageRequest } from '../api/api.js';
import { iterate } from '../api/pages.js';
import type { Page } from '../api/records.js';

export interface Walk<T> extends AsyncIterable<T> {
	/** What the first page said; undefined before it came. */
	count(): number | undefined;
}

export interface WalkOptions {
	signal: AbortSignal;
	/** Stops after so many records; pages are asked for no larger than that. */
	limit?: number | undefined;
}

/** The largest page a service is asked for; a deployment may answer fewer. */
const largestPage = 1000;

/** `filter` goes along with every page. Throws what the collection throws, and `bad_answer` for pages without end. */
export function walk<F extends object, T>(
	collection: { page(request: F & PageRequest, call?: Call): Promise<Page<T>> },
	filter: F,
	{ signal, limit = Number.POSITIVE_INFINITY }: WalkOptions,
): Walk<T> {
	let count: number | undefined;
	const readPage = async (request: PageRequest) => {
		signal.throwIfAborted();
		const page = await collection.page({ ...filter, ...request }, { signal });
		count ??= page.count;
		return page;
	};
	async function* records(): AsyncGenerator<T> {
		let given = 0;
		for await (const record of iterate(readPage, { page_size: Math.min(largestPage, limit) })) {
			yield record;
			given += 1;
			if (given >= limit) return;
		}
	}
	return { [Symbol.asyncIterator]: records, count: () => count };
}
