import type { PageRequest } from './api.js';
import { ApiError } from './errors.js';
import type { Page } from './records.js';
import { canParseUrl } from './schema/url.js';

/** Rows that change meanwhile may be missed or repeated. Throws `bad_answer` for endless pages. */
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
		if (visited.has(name)) throw lost(`${name.slice(0, 80)} comes after itself`);
		visited.add(name);
		const following = await readPage({ ...size, ...request });
		assertProgress(page, following);
		page = following;
	}
}

/** Reads the next slice ahead once `onNext` reports it. Throws `bad_answer` for a key that returns. */
export async function* iterateSlices<K, S extends { next: K | null }>(
	from: K,
	readSlice: (key: K, onNext: (next: K | null) => void) => Promise<S>,
): AsyncGenerator<S, void, undefined> {
	const visited = new Set<K>();
	const begin = (key: K): Begun<K, S> => {
		if (visited.has(key)) throw lost(`what follows ${String(key).slice(0, 80)} leads back to it`);
		visited.add(key);
		let next: K | null = null;
		let mayFollow = false;
		let following: Begun<K, S> | null = null;
		const follow = () => {
			if (mayFollow && next !== null && !visited.has(next)) following = begin(next);
		};
		const slice = readSlice(key, (reported) => {
			next = reported;
			follow();
		});
		// It may fail long before its turn.
		slice.catch(() => undefined);
		return {
			key,
			slice,
			mayFollow: () => {
				mayFollow = true;
				follow();
			},
			takeFollowing: () => {
				const taken = following;
				// An old slice that the collector takes for living would keep all that follow it.
				following = null;
				return taken;
			},
		};
	};
	for (let begun: Begun<K, S> | null = begin(from); begun !== null; ) {
		begun.mayFollow();
		const slice: S = await begun.slice;
		yield slice;
		const following: Begun<K, S> | null = begun.takeFollowing();
		if (slice.next === null) return;
		if (following?.key === slice.next) begun = following;
		else {
			if (following !== null) visited.delete(following.key);
			begun = begin(slice.next);
		}
	}
}

interface Begun<K, S> {
	key: K;
	slice: Promise<S>;
	mayFollow(): void;
	takeFollowing(): Begun<K, S> | null;
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

// Only the query is used: a link may name a foreign host, or the inside address of a proxied service.
function nextPage(next: string): { name: string; request: PageRequest } {
	const link = canParseUrl(next, 'http://localhost/') ? new URL(next, 'http://localhost/') : null;
	const query = link?.search ?? '';
	const text = link?.searchParams.get('page') ?? null;
	if (text === null) {
		if (query === '' || query.length > maxQueryLength) throw lost('the link to the next page names no page');
		return { name: `page ${query}`, request: { query } };
	}
	const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
	if (!(number >= 1) || query.length > maxQueryLength) throw lost('the link to the next page names no page');
	return { name: `page ${number}`, request: { page: number, query } };
}

function assertProgress<T>(before: Page<T>, after: Page<T>): void {
	if (after.next === null) return;
	if (after.results.length === 0) throw lost('an empty page has a next one');
	if (JSON.stringify(before.results) === JSON.stringify(after.results))
		throw lost('two pages hold the same rows');
}

function lost(why: string): ApiError {
	return new ApiError('bad_answer', `The pages of this collection do not end: ${why}.`);
}
