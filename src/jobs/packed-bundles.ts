/** Bundles as they cross from the thread that reads: a few texts and numbers in place of a list of strings a row. */
import type { CheckedBatch } from '../api/checked-batch.js';
import type { RejectedRow } from '../cli/tabular/finding.js';
import type { Mapping } from '../cli/tabular/header.js';
import type { Bundle, BundledRow } from './import-bundles.js';

/** Plain data. No cell of a row that can be put holds NUL, so NUL parts them. */
export interface PackedBundle {
	/** See `Bundle`. */
	first: number;
	rejects: RejectedRow[];
	/** Where each row begins in the source. */
	lines: Uint32Array;
	/**
	 * The rows as the file has them, one cell after the other, in UTF-8: only rows that are refused are looked at, and
	 * bytes are handed over between threads where a text would be copied into the other one's heap.
	 */
	original: Uint8Array<ArrayBuffer>;
	/** Cells of a row in `original`. */
	width: number;
	rows: PackedRows;
}

/** `cells`: by the mapping, empty = not given, for the wire. `checked`: for an engine in this process. */
export type PackedRows = { form: 'cells'; text: string } | ({ form: 'checked' } & CheckedRows);

type CheckedRows = Pick<CheckedBatch, 'marks' | 'text'>;

/** Checks rows given by the names of their columns, row after row. */
export type CheckRows = (columns: readonly string[], cells: (string | null)[]) => CheckedRows;

/** What is wanted of a reader of bundles. */
export interface BundleRequest {
	mapping: Mapping;
	maxRows: number;
	form: PackedRows['form'];
}

/** Reads a table elsewhere. Ends with what reading it throws. */
export type ReadBundles = (request: BundleRequest) => AsyncIterable<PackedBundle>;

const separator = '\0';
const encoder = new TextEncoder();
// A mark of the order of bytes within a cell is the cell's.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** `check` is null for the form `cells`. */
export function packBundle(
	{ first, rows, rejects }: Bundle,
	columns: readonly string[],
	check: CheckRows | null,
): PackedBundle {
	const cells = rows.flatMap((row) => row.cells);
	return {
		first,
		rejects,
		lines: Uint32Array.from(rows, ({ line }) => line),
		original: encoder.encode(rows.map(({ original }) => original.join(separator)).join(separator)),
		width: rows[0]?.original.length ?? 0,
		rows:
			check === null
				? { form: 'cells', text: cells.map((cell) => cell ?? '').join(separator) }
				: { form: 'checked', ...check(columns, cells) },
	};
}

/** Lets the rows of `packBundle` be named one by one. */
export function unpackOriginals({ lines, original, width }: PackedBundle): Omit<BundledRow, 'cells'>[] {
	const cells = decoder.decode(original).split(separator);
	return Array.from(lines, (line, row) => ({
		line,
		original: cells.slice(row * width, (row + 1) * width),
	}));
}

export function unpackCells(text: string): (string | null)[] {
	return text.split(separator).map((cell) => (cell === '' ? null : cell));
}
