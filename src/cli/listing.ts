/** What every `list` verb shares: `--match`, `--sort`, `--limit`, `--all`. */
import type { CommandContext } from './context.js';
import { UsageError } from './errors.js';
import type { Columns } from './render/columns.js';
import { didYouMean } from './suggest.js';
import type { Walk } from './walk.js';

export const listOptions = {
	match: { kind: 'text', summary: 'only those whose name contains this', placeholder: 'TEXT' },
	sort: { kind: 'text', summary: 'by a column, descending with a leading -', placeholder: '[-]COLUMN' },
	limit: { kind: 'integer', summary: 'at most so many', min: 1 },
	all: { kind: 'flag', summary: 'all of them, on a terminal too' },
} as const;

export interface Listing<T> {
	columns: Columns<T>;
	/** The records; `limit` is given when nothing is left out or reordered on the way. */
	rows: (limit: number | undefined) => Walk<T>;
	/** Absent: `--match` was not offered. */
	matches?: (record: T, text: string) => boolean;
}

export interface ListingOptions {
	match?: string | undefined;
	sort?: string | undefined;
	limit?: number | undefined;
	all: boolean;
}

/** Prints the list. Streams unless it has to be sorted. */
export async function listRows<T>(
	cx: CommandContext,
	options: ListingOptions,
	listing: Listing<T>,
): Promise<void> {
	const { match, sort, limit, all } = options;
	if (limit !== undefined && all) throw new UsageError('--limit and --all cannot both be meant');
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

async function collect<T>(rows: AsyncIterable<T>): Promise<T[]> {
	const all: T[] = [];
	for await (const row of rows) all.push(row);
	return all;
}

/** Numbers by size, the rest as text without regard to case; equal ones stay in the service's order. */
function orderBy<T>(sort: string, columns: Columns<T>): (a: T, b: T) => number {
	const descending = sort.startsWith('-');
	const key = descending ? sort.slice(1) : sort;
	const column = columns.find((one) => one.key === key);
	if (column === undefined) {
		const keys = columns.map((one) => one.key);
		throw new UsageError(`--sort: there is no column "${key}"`, {
			hint: `${didYouMean(key, keys) ?? ''} valid: ${keys.join(', ')}`.trim(),
		});
	}
	const direction = descending ? -1 : 1;
	const collator = new Intl.Collator('en', { sensitivity: 'base', numeric: true });
	return (a, b) => {
		const [left, right] = [column.value(a), column.value(b)];
		if (typeof left === 'number' && typeof right === 'number') return direction * (left - right);
		return direction * collator.compare(String(left ?? ''), String(right ?? ''));
	};
}
