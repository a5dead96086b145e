import type { Call, PageRequest } from '../../api/api.js';
import { type Day, formatDateTime, momentOf } from '../../api/datetime.js';
import { iterate, iterateSlices } from '../../api/pages.js';
import type { KeySlice, Page, WireDateTime } from '../../api/records.js';
import type { OptionValues } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { didYouMean } from '../frame/words.js';
import { type Columns, findColumn } from '../render/columns.js';

export const listOptions = {
	match: { kind: 'text', summary: 'filter by a part of the name', placeholder: 'TEXT' },
	sort: { kind: 'text', summary: 'sort by a column, descending with a leading -', placeholder: '[-]COLUMN' },
	limit: { kind: 'integer', summary: 'show at most this many', min: 1 },
	all: { kind: 'flag', summary: 'show all, on a terminal too' },
} as const;

const { match: _, ...others } = listOptions;
/** Options of commands that have their own filters instead of `--match`. */
export const pageOptions = others;

interface Listing<T> {
	columns: Columns<T>;
	rows: (limit: number | undefined) => Walk<T>;
	matches?: (record: T, text: string) => boolean;
}

type ListingOptions = Partial<OptionValues<typeof listOptions>> & { all: boolean };

export async function listRows<T>(
	cx: CommandContext,
	options: ListingOptions,
	listing: Listing<T>,
): Promise<void> {
	const { match, sort, limit, all } = options;
	if (limit !== undefined && all) throw new UsageError('use either --limit or --all, not both');
	const order = sort === undefined ? null : orderBy(sort, listing.columns);
	const isPlain = match === undefined && order === null;
	const source = listing.rows(isPlain ? limit : undefined);
	const matches = listing.matches;
	const kept =
		match === undefined || matches === undefined ? source : filtered(source, (one) => matches(one, match));
	const rows = order === null ? kept : (await collect(kept)).sort(order);
	const total = Array.isArray(rows) ? rows.length : match === undefined ? source.count : undefined;
	await cx.out.rows(limit === undefined ? rows : take(rows, limit), listing.columns, {
		...(total === undefined ? {} : { total }),
		all: all || limit !== undefined,
	});
}

async function* filtered<T>(rows: AsyncIterable<T>, test: (row: T) => boolean): AsyncGenerator<T> {
	for await (const row of rows) if (test(row)) yield row;
}

async function* take<T>(rows: Iterable<T> | AsyncIterable<T>, limit: number): AsyncGenerator<T> {
	let given = 0;
	for await (const row of rows) {
		yield row;
		given += 1;
		if (given >= limit) return;
	}
}

export async function collect<T>(rows: AsyncIterable<T>): Promise<T[]> {
	const all: T[] = [];
	for await (const row of rows) all.push(row);
	return all;
}

/** Sorts numbers by size, and the rest as text without regard to case. Equal values keep the service's order. */
function orderBy<T>(sort: string, columns: Columns<T>): (a: T, b: T) => number {
	const descending = sort.startsWith('-');
	const key = descending ? sort.slice(1) : sort;
	const column = findColumn(columns, key);
	if (column === undefined)
		throw unknownColumn(
			key,
			columns.map((one) => one.key),
		);
	const direction = descending ? -1 : 1;
	const collator = new Intl.Collator('en', { sensitivity: 'base', numeric: true });
	return (a, b) => {
		const [left, right] = [column.value(a), column.value(b)];
		if (typeof left === 'number' && typeof right === 'number') return direction * (left - right);
		return direction * collator.compare(String(left ?? ''), String(right ?? ''));
	};
}

export function unknownColumn(key: string, valid: readonly string[]): UsageError {
	return new UsageError(`--sort: unknown column "${key}"`, {
		hint: `${didYouMean(key, valid) ?? ''} valid: ${valid.join(', ')}`.trim(),
	});
}

export function beginningOf(cx: CommandContext, day: Day): WireDateTime {
	return formatDateTime(momentOf(`${day}T00:00:00`, cx.timeZone()).at);
}

/**
 * The default order is newest first. The service sorts by creation date, so rows can stream. For any other order,
 * mailctl first reads all rows.
 */
export function newestFirst<O extends { sort?: string | undefined }>(options: O) {
	const { sort } = options;
	if (sort !== 'date_created' && sort !== '-date_created')
		return { how: options, ordering: '-date_created' as const };
	return { how: { ...options, sort: undefined }, ordering: sort } as const;
}

export interface Walk<T> extends AsyncIterable<T> {
	count(): number | undefined;
}

export interface WalkOptions {
	signal: AbortSignal;
	limit?: number | undefined;
}

const largestPage = 1000;

/** `page` gets slower with the page number. `slice` continues after a key at constant cost; some services lack it. */
export interface Collection<F extends object, T> {
	page(request: F & PageRequest, call?: Call): Promise<Page<T>>;
	slice?(request: F & { cursor: string; limit: number }, call?: Call): Promise<KeySlice<T>>;
}

export function walk<F extends object, T>(
	collection: Collection<F, T>,
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
	const pageSize = Math.min(largestPage, limit);
	async function* all(): AsyncGenerator<T> {
		const first = await readPage({ page_size: pageSize });
		if (first.cursor === undefined || collection.slice === undefined) {
			yield* iterate(
				async (request) => ((request.page ?? request.query) === undefined ? first : await readPage(request)),
				{ page_size: pageSize },
			);
			return;
		}
		yield* first.results;
		if (first.cursor === null) return;
		const { slice } = collection;
		const read = (cursor: string) => slice({ ...filter, cursor, limit: pageSize }, { signal });
		for await (const results of inSlices(signal, first.cursor, read)) yield* results;
	}
	return { [Symbol.asyncIterator]: () => take(all(), limit), count: () => count };
}

export function mapped<T, R>(rows: Walk<T>, of: (row: T) => R | Promise<R>): Walk<R> {
	async function* each(): AsyncGenerator<R> {
		for await (const row of rows) yield await of(row);
	}
	return { [Symbol.asyncIterator]: each, count: rows.count };
}

/** A row that changes during the walk may appear in its old or new state. */
export async function* inSlices<K, T extends { results: readonly unknown[]; next: K | null }>(
	signal: AbortSignal,
	from: K,
	read: (after: K, call: { signal: AbortSignal; onNext: (next: K | null) => void }) => Promise<T>,
): AsyncGenerator<T['results']> {
	const slices = iterateSlices<K, T>(from, async (after, onNext) => {
		signal.throwIfAborted();
		return read(after, { signal, onNext });
	});
	for await (const { results } of slices) yield results;
}
