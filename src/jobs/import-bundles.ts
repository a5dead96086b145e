/** Bundles the rows of a table into batches of an import, keeping what is needed to name the rows that come back. */
import { duplicateCode, type RejectedRow, type TableRow } from '../cli/tabular/finding.js';
import type { Mapping } from '../cli/tabular/header.js';
import { type Cells, rowBytes, toImportRow } from './import-rows.js';

export type Bundle = BundleOf<BundledRow[]>;

/** Its rows in whatever form they are kept. */
export interface BundleOf<Rows> {
	/** Number of its first row among the rows put, from 0: rows refused here do not count. */
	first: number;
	rows: Rows;
	/** Rows that are not put at all: they cannot be, or this is a file of rejects that says so (`refusedAgain`). */
	rejects: RejectedRow[];
}

/** Takes the rows of a bundle as they come. */
export interface RowKeeper<Rows> {
	add(row: BundledRow): void;
	readonly rows: Rows;
}

export interface BundledRow {
	line: number;
	/** As they are put, in the order of the mapping. */
	cells: Cells;
	/** As the file has them. */
	original: readonly string[];
}

/** 4 MiB less the columns' names and the JSON around the rows. */
const maxBatchBytes = 4 * 1024 * 1024 - 128 * 1024;
/** Of what is kept for rejects, about the bytes: columns that are left out may be larger than those that are put. */
const maxKeptLength = 8 * 1024 * 1024;

/** About the bytes that a refused row takes in memory: objects, of which an empty cell is one too. */
export function sizeOfReject({ cells }: RejectedRow): number {
	return cells.reduce((sum, cell) => sum + cell.length + 50, 250);
}

/** Bundles whose rows are lists; see `bundleInto`. */
export function bundleRows(
	rows: AsyncIterable<TableRow>,
	mapping: Mapping,
	maxRows: number,
): AsyncGenerator<Bundle, void, undefined> {
	return bundleInto(rows, mapping, maxRows, () => {
		const kept: BundledRow[] = [];
		return { rows: kept, add: (row) => void kept.push(row) };
	});
}

/**
 * The same rows and options give the same bundles: a run that goes on relies on it. Never empty; `first` goes on from
 * one to the next. `open` makes what keeps the rows of the next bundle.
 */
export async function* bundleInto<Rows>(
	rows: AsyncIterable<TableRow>,
	mapping: Mapping,
	maxRows: number,
	open: () => RowKeeper<Rows>,
): AsyncGenerator<BundleOf<Rows>, void, undefined> {
	let bundle = new OpenBundle(0, maxRows, open());
	for await (const row of rows) {
		const next = convert(row, mapping);
		if (!bundle.hasRoomFor(next)) {
			yield bundle;
			bundle = new OpenBundle(bundle.end, maxRows, open());
		}
		bundle.add(next);
	}
	if (!bundle.isEmpty) yield bundle;
}

type Converted = { kind: 'row'; row: BundledRow; bytes: number } | { kind: 'reject'; reject: RejectedRow };

function convert(row: TableRow, mapping: Mapping): Converted {
	const { line, cells: original } = row;
	if (row.kind === 'bad') return rejected(row, row.code, row.error);
	const code = mapping.codeColumn === undefined ? '' : (original[mapping.codeColumn] ?? '');
	const again = refusedAgain.get(code);
	if (again !== undefined) return rejected(row, code, again);
	const made = toImportRow(original, mapping);
	if (made.kind === 'reject') return rejected(row, made.code, made.error);
	const bytes = rowBytes(made.cells);
	if (bytes > maxBatchBytes) return rejected(row, 'row_too_long', 'the row is too long for a batch of 4 MiB');
	return { kind: 'row', row: { line, cells: made.cells, original }, bytes };
}

const misfit = 'its cells were filled up or joined to fit the header: mend them, and empty its _code';

/**
 * Why a row of a rejects file is refused as it was, by its code: nothing in the row itself says so any more, and who
 * mends three rows of thousands must not take in the others.
 */
const refusedAgain: ReadonlyMap<string, string> = new Map([
	[duplicateCode, 'a duplicate of the import before (without its _code it is taken)'],
	['too_few_cells', misfit],
	['too_many_cells', misfit],
]);

function rejected({ line, cells }: TableRow, code: string, error: string): Converted {
	return { kind: 'reject', reject: { line, code, error, cells } };
}

class OpenBundle<Rows> implements BundleOf<Rows> {
	readonly first: number;
	readonly rejects: RejectedRow[] = [];
	readonly #maxRows: number;
	readonly #keeper: RowKeeper<Rows>;
	#count = 0;
	#bytes = 0;
	#kept = 0;

	constructor(first: number, maxRows: number, keeper: RowKeeper<Rows>) {
		this.first = first;
		this.#maxRows = maxRows;
		this.#keeper = keeper;
	}

	get rows(): Rows {
		return this.#keeper.rows;
	}

	/** Number of the first row behind it. */
	get end(): number {
		return this.first + this.#count;
	}

	get isEmpty(): boolean {
		return this.#count === 0 && this.rejects.length === 0;
	}

	hasRoomFor(next: Converted): boolean {
		if (this.isEmpty) return true;
		if (this.#kept > maxKeptLength || this.rejects.length >= this.#maxRows) return false;
		if (next.kind === 'reject') return true;
		return this.#count < this.#maxRows && this.#bytes + next.bytes <= maxBatchBytes;
	}

	add(next: Converted): void {
		if (next.kind === 'reject') {
			this.#kept += sizeOfReject(next.reject);
			this.rejects.push(next.reject);
			return;
		}
		for (const cell of next.row.original) this.#kept += cell.length + 1;
		this.#keeper.add(next.row);
		this.#count += 1;
		this.#bytes += next.bytes;
	}
}
