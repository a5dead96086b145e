/** Pages as DRF links them: numbers or `last`, and links that keep whatever else the query holds. */
import type { PageRequest } from '../../api/api.js';
import type { Page } from '../../api/records.js';
import type { Query } from './query.js';

/** The page that a query asks for. Throws what `read` throws: `not_found` "Invalid page." for what is no page. */
export async function readPage<T>(
	query: Query,
	read: (request: PageRequest) => Promise<Page<T>>,
): Promise<Page<T>> {
	const page_size = query.integer('page_size');
	const size = page_size === undefined ? {} : { page_size };
	if (query.text('page') === 'last') return relink(query, await readLast(size, read));
	const page = query.integer('page');
	return relink(query, await read({ ...size, ...(page !== undefined && { page }) }));
}

/** `?page=last` is DRF's. How many pages there are shows in the first. */
async function readLast<T>(
	size: PageRequest,
	read: (request: PageRequest) => Promise<Page<T>>,
): Promise<Page<T>> {
	const first = await read({ ...size });
	if (first.next === null) return first;
	return read({ ...size, page: Math.ceil(first.count / first.results.length) });
}

/** Base and path of a link are the Api's; its query is the request's with another page. */
function relink<T>(query: Query, page: Page<T>): Page<T> {
	return { ...page, next: link(query, page.next), previous: link(query, page.previous) };
}

function link(query: Query, url: string | null): string | null {
	if (url === null) return null;
	const { origin, pathname, searchParams } = new URL(url);
	const number = searchParams.get('page');
	const text = query.withPage(number === null ? null : Number(number));
	return `${origin}${pathname}${text === '' ? '' : `?${text}`}`;
}
