/**
 * Numbered pages as in Django REST framework: absolute links, no `page` in the link to page 1. Assumption: 100 a page,
 * `page_size` up to 1000; the service document defines neither.
 */
import type { Call, Crud, PageRequest } from '../api/api.js';
import { ApiError } from '../api/errors.js';
import type { Page } from '../api/records.js';
import type { PageOf, Slice, Store, Written } from '../store/store.js';
import { deleted, type EngineContext, found, written } from './context.js';
import { readSettings } from './settings.js';

const defaultPageSize = 100;
const maxPageSize = 1000;

/** The filters of the request come with the links to other pages. */
export async function readPage<Request extends PageRequest, Results>(
	context: Pick<EngineContext, 'store'>,
	request: Request,
	path: string,
	slice: (
		at: PageOf,
		filter: Omit<Request, keyof PageRequest>,
	) => Promise<{ count: number; results: Results; cursor?: string }>,
): Promise<Page<unknown, Results>> {
	const { page: wanted, page_size: size, query: _, ...filter } = request;
	const page = pageNumber(wanted);
	const page_size = pageSize(size);
	const [{ count, results, cursor }, link] = await Promise.all([
		slice({ page: page ?? 1, page_size }, filter),
		linker(context.store, path, { page_size: size, ...filter }),
	]);
	const pages = Math.max(1, Math.ceil(count / page_size));
	if (page === null || page > pages) throw new ApiError('not_found', 'Invalid page.');
	return {
		count,
		next: page < pages ? link(page + 1) : null,
		previous: page > 1 ? link(page - 1) : null,
		results,
		...(page < pages && cursor !== undefined && { cursor }),
	};
}

interface Resource<T, Id> {
	path: string;
	page(at: PageOf): Promise<Slice<T>>;
	get(id: Id): Promise<T | null>;
	create(body: unknown): Promise<Written<T>>;
	change(id: Id, body: unknown, mode: 'replace' | 'patch'): Promise<Written<T>>;
	delete(id: Id, call?: Call): Promise<boolean>;
}

/** An unknown id is "Not found." whatever the body is. */
export function crud<T, Input, Id extends number | string>(
	context: Pick<EngineContext, 'store'>,
	{ path, page, get, create, change, delete: remove }: Resource<T, Id>,
): Crud<T, Input, object, Id> {
	const changeAs = (mode: 'replace' | 'patch') => async (id: Id, body: unknown) => {
		found(await get(id));
		return written(await change(id, body, mode));
	};
	return {
		page: (request) => readPage(context, request, path, page),
		get: async (id) => found(await get(id)),
		create: async (body) => written(await create(body)),
		replace: changeAs('replace'),
		patch: changeAs('patch'),
		delete: async (id, call) => deleted(await remove(id, call)),
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

async function linker(store: Store, path: string, filters: object): Promise<(page: number) => string> {
	const linkBase = await linkBaseOf(store);
	const given = Object.entries(filters).filter(([, value]) => value !== undefined);
	return (page) => {
		const query = new URLSearchParams(page > 1 ? { page: String(page) } : {});
		for (const [key, value] of given) query.set(key, wireValue(value));
		return `${linkBase}${path}${query.size === 0 ? '' : `?${query}`}`;
	};
}

const asked = new WeakMap<Store, Promise<string>>();

function linkBaseOf(store: Store): Promise<string> {
	const known = asked.get(store);
	if (known !== undefined) return known;
	const asking = readSettings(store).then(({ linkBase }) => linkBase);
	asked.set(store, asking);
	setImmediate(() => asked.delete(store));
	return asking;
}

function wireValue(value: unknown): string {
	if (typeof value === 'boolean') return value ? 'True' : 'False';
	return String(value);
}
