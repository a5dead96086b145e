import type { PageRequest } from './api.js';
import { ApiError } from './errors.js';
import type { Page } from './records.js';
import { canParseUrl } from './schema/url.js';

/** May miss or repeat rows that change between two requests. Throws `bad_answer` if the pages never end. */
export async function* iterate<T>(
	readPage: (request: PageRequest) => Promise<Page<T>>,
	{ page_size }: { page_size?: number } = {},
): AsyncGenerator<T, void, undefined> {
	const size = page_size === undefined ? {} : { page_size };
	const visited = new Set(['page 1']);
	let page = await readPage({ ...size });
	while (true) {
		yield* page.results;
		if (page.next === null) return;
		const { name, request } = nextPage(page.next);
		if (visited.has(name)) throw lost(`${name.slice(0, 80)} comes a second time`);
		visited.add(name);
		const following = await readPage({ ...size, ...request });
		assertProgress(page, following);
		page = following;
	}
}

/** Requests the next slice as soon as `onNext` reports its key. Throws `bad_answer` for a repeated key. */
export async function* iterateSlices<K, S extends { next: K | null }>(
	from: K,
	readSlice: (key: K, onNext: (next: K | null) => void) => Promise<S>,
): AsyncGenerator<S, void, undefined> {
	const visited = new Set<K>();
	const readAhead = (begun: Omit<Begun<K, S>, 'slice'>) => {
		if (begun.isDue && begun.next !== null && !visited.has(begun.next)) begun.ahead = begin(begun.next);
	};
	const begin = (key: K): Begun<K, S> => {
		if (visited.has(key)) throw lost(`the pages after ${String(key).slice(0, 80)} lead back to it`);
		visited.add(key);
		const begun: Omit<Begun<K, S>, 'slice'> = { key, next: null, isDue: false, ahead: null };
		const slice = readSlice(key, (next) => {
			begun.next = next;
			readAhead(begun);
		});
		// Catch a failure now, because the loop may await this slice much later.
		slice.catch(() => undefined);
		return Object.assign(begun, { slice });
	};
	for (let begun = begin(from); ; ) {
		begun.isDue = true;
		readAhead(begun);
		const slice: S = await begun.slice;
		yield slice;
		const { ahead } = begun;
		// Unlink the next slice. Otherwise an old slice that V8 has not freed would keep all later ones in memory.
		begun.ahead = null;
		if (slice.next === null) return;
		if (ahead?.key === slice.next) begun = ahead;
		else {
			if (ahead !== null) visited.delete(ahead.key);
			begun = begin(slice.next);
		}
	}
}

interface Begun<K, S> {
	key: K;
	slice: Promise<S>;
	next: K | null;
	/** True once the loop has reached this slice. */
	isDue: boolean;
	ahead: Begun<K, S> | null;
}

export async function take<T>(rows: AsyncIterable<T>, limit: number): Promise<T[]> {
	const taken: T[] = [];
	if (limit <= 0) return taken;
	for await (const row of rows) {
		taken.push(row);
		if (taken.length >= limit) break;
	}
	return taken;
}

const maxQueryLength = 8_192;

// Use only the link's query. A service behind a proxy may write its internal host into the link.
function nextPage(next: string): { name: string; request: PageRequest } {
	const link = canParseUrl(next, 'http://localhost/') ? new URL(next, 'http://localhost/') : null;
	const query = link?.search ?? '';
	const text = link?.searchParams.get('page') ?? null;
	if (text === null) {
		if (query === '' || query.length > maxQueryLength)
			throw lost('the link to the next page contains no page number');
		return { name: `page ${query}`, request: { query } };
	}
	const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
	if (!(number >= 1) || query.length > maxQueryLength)
		throw lost('the link to the next page contains no page number');
	return { name: `page ${number}`, request: { page: number, query } };
}

function assertProgress<T>(before: Page<T>, after: Page<T>): void {
	if (after.next === null) return;
	if (after.results.length === 0) throw lost('an empty page has a next page');
	if (JSON.stringify(before.results) === JSON.stringify(after.results))
		throw lost('two pages hold the same rows');
}

function lost(why: string): ApiError {
	return new ApiError('bad_answer', `The pages of this collection do not end: ${why}.`);
}
