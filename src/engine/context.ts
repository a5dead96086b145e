import type { Call, Crud, PageRequest } from '../api/api.js';
import type { Clock } from '../api/datetime.js';
import { ApiError, type FieldErrors, invalid, notFound } from '../api/errors.js';
import type { Page, TestResult, Uuid, Webhook } from '../api/records.js';
import type { RefusalCode } from '../api/refusals.js';
import type { Parsed } from '../api/schema.js';
import type { PageOf, Seen, Slice, Store, Written } from '../store/store.js';
import type { Courier } from './rules/campaign-rows.js';
import { readSettings } from './settings.js';

export interface EngineContext {
	store: Store;
	clock: Clock;
	newId: () => Uuid;
	newSecret: () => string;
	ports: EnginePorts;
}

export type StoreContext = Pick<EngineContext, 'store' | 'clock'>;

/** With the courier `api`, another service sends the messages, and this database stores only the campaigns. */
export interface CampaignContext extends StoreContext, Pick<EngineContext, 'newId'> {
	courier: Courier;
}

export function written<T>(outcome: Written<T>): T {
	switch (outcome.kind) {
		case 'written':
			return outcome.record;
		case 'not_found':
			throw notFound();
		case 'refused':
			throw invalid(outcome.errors);
	}
}

export function checked<T>(
	parsed: { kind: 'valid'; value: T } | { kind: 'invalid'; errors: FieldErrors },
): T {
	if (parsed.kind === 'invalid') throw invalid(parsed.errors);
	return parsed.value;
}

/** If some fields are bad, also checks the others against the store: a 400 answer names every bad field. */
export async function checkedBeside<T>(
	parsed: Parsed<T>,
	fieldErrors: (good: NoInfer<Partial<T>>) => Promise<FieldErrors>,
): Promise<T> {
	if (parsed.kind === 'valid') return parsed.value;
	throw invalid({ ...parsed.errors, ...(await fieldErrors(parsed.good ?? {})) });
}

export function found<T>(record: T | null): T {
	if (record === null) throw notFound();
	return record;
}

export function refuse(field: string, message: string, code = 'invalid'): never {
	throw invalid({ [field]: [{ code, message }] });
}

export function deleted(existed: boolean): void {
	if (!existed) throw notFound();
}

export function assertWanted(signal: AbortSignal | undefined): void {
	if (signal?.aborted) throw new ApiError('network', 'The request was aborted.', { cause: signal.reason });
}

export function seenBy(call: Call | undefined): Seen {
	return call?.ownOnly === true ? { only_of: call.client ?? '' } : {};
}

export interface EnginePorts {
	/** Returns null if a webhook may call the URL. Accepts host names that do not resolve. */
	checkTarget(url: string): Promise<RefusalCode | null>;
	notifyTest(webhook: Webhook): Promise<TestResult>;
	renderMessage(id: Uuid): Promise<Buffer | null>;
	whyPaused(): string | null;
}

/**
 * Assumption, because the service document defines no page sizes. Links to pages are as in Django REST framework: they
 * are absolute, and the link to page 1 has no `page`.
 */
const defaultPageSize = 100;
const maxPageSize = 1000;

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

/** The methods throw `not_found` for an unknown id, even if the body is invalid. */
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

// Like DRF's PageNumberPagination.
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
