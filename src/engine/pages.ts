/**
 * Numbered pages as in Django REST framework: absolute links, no `page` in the link to page 1. Assumption: 100 a page,
 * `page_size` up to 1000; the service document defines neither.
 */
import type { PageRequest } from '../api/api.js';
import { ApiError } from '../api/errors.js';
import type { Page } from '../api/records.js';
import type { PageOf, Store } from '../store/store.js';
import type { EngineContext } from './context.js';
import { readSettings } from './settings.js';

const defaultPageSize = 100;
const maxPageSize = 1000;

interface PagePlace {
	path: string;
	filters?: Readonly<Record<string, string | number | boolean | undefined>>;
}

export async function readPage<Results>(
	context: Pick<EngineContext, 'store'>,
	request: PageRequest,
	place: PagePlace,
	slice: (page: PageOf) => Promise<{ count: number; results: Results; cursor?: string }>,
): Promise<Page<unknown, Results>> {
	const page = pageNumber(request.page);
	const page_size = pageSize(request.page_size);
	// A missing collection is "Not found." for any page. A store in threads gets both calls in one message.
	const [{ count, results, cursor }, link] = await Promise.all([
		slice({ page: page ?? 1, page_size }),
		linker(context, request, place),
	]);
	const pages = Math.max(1, Math.ceil(count / page_size));
	if (page === null || page > pages) throw invalidPage();
	return {
		count,
		next: page < pages ? link(page + 1) : null,
		previous: page > 1 ? link(page - 1) : null,
		results,
		...(page < pages && cursor !== undefined && { cursor }),
	};
}

function pageNumber(page: number | undefined): number | null {
	if (page === undefined) return 1;
	return Number.isSafeInteger(page) && page >= 1 ? page : null;
}

// DRF's PageNumberPagination ignores a bad page size, and cuts one that is too large.
function pageSize(size: number | undefined): number {
	if (size === undefined || !Number.isSafeInteger(size) || size < 1) return defaultPageSize;
	return Math.min(size, maxPageSize);
}

function invalidPage(): ApiError {
	return new ApiError('not_found', 'Invalid page.');
}

async function linker(
	{ store }: Pick<EngineContext, 'store'>,
	request: PageRequest,
	place: PagePlace,
): Promise<(page: number) => string> {
	const linkBase = await linkBaseOf(store);
	const filters = Object.entries(place.filters ?? {}).filter(([, value]) => value !== undefined);
	return (page) => {
		const query = new URLSearchParams();
		if (page > 1) query.set('page', String(page));
		if (request.page_size !== undefined) query.set('page_size', String(request.page_size));
		for (const [key, value] of filters) query.set(key, wireValue(value));
		const text = query.toString();
		return `${linkBase}${place.path}${text === '' ? '' : `?${text}`}`;
	};
}

/** Pages of one turn of the event loop ask once. */
const asked = new WeakMap<Store, Promise<string>>();

function linkBaseOf(store: Store): Promise<string> {
	const known = asked.get(store);
	if (known !== undefined) return known;
	const asking = readSettings(store).then(({ linkBase }) => linkBase);
	asked.set(store, asking);
	setImmediate(() => asked.delete(store));
	return asking;
}

function wireValue(value: string | number | boolean | undefined): string {
	if (typeof value === 'boolean') return value ? 'True' : 'False';
	return String(value);
}
