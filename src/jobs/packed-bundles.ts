/** Bundles as they cross from the thread that reads: the bytes of their rows, in place of a list of strings a row. */
import { bytesOf, newTexts, type RowTexts, TextReader, TextWriter } from '../api/row-texts.js';
import type { Mapping } from '../cli/tabular/header.js';
import { type BundledRow, type BundleOf, type RowKeeper, sizeOfReject } from './import-bundles.js';
import type { Cells } from './import-rows.js';

/** The rows of a bundle. No cell of one that can be put holds NUL, so NUL parts what a row consists of. */
export interface RowBytes {
	/** As they are put, in one of the forms. */
	put: RowTexts;
	/** Where each begins in the source, and its cells there: only those of rows that are refused are looked at. */
	originals: RowTexts;
}

/** `cells`: by the mapping, empty = not given, for the wire. `checked`: for an engine in this process. */
export type RowForm = 'cells' | 'checked';

/** Plain data. */
export interface PackedBundle extends BundleOf<RowBytes> {
	form: RowForm;
}

/** A bundle whose bytes are lent: they serve for another one after `giveBack`, which is called once. */
export interface LentBundle extends PackedBundle {
	giveBack(): void;
}

/** Checks a row and writes it as the engine reads it. */
export type CheckRow = (cells: Cells) => string;

/** What is wanted of a reader of bundles. */
export interface BundleRequest {
	mapping: Mapping;
	maxRows: number;
	form: RowForm;
}

/** Reads a table elsewhere. Ends with what reading it throws. */
export type ReadBundles = (request: BundleRequest) => AsyncIterable<LentBundle>;

const separator = '\0';

/** What of an earlier bundle is still there is written over. `check` is null for the form `cells`. */
export function packRows(check: CheckRow | null, spare: RowBytes = newRowBytes()): RowKeeper<RowBytes> {
	const put = { ...spare.put, count: 0 };
	const originals = { ...spare.originals, count: 0 };
	const toPut = new TextWriter(put);
	const toOriginals = new TextWriter(originals);
	return {
		rows: { put, originals },
		add: ({ line, cells, original }) => {
			toPut.add(check === null ? cells.map((cell) => cell ?? '').join(separator) : check(cells));
			toOriginals.add(line + separator + original.join(separator));
		},
	};
}

function newRowBytes(): RowBytes {
	return { put: newTexts(), originals: newTexts() };
}

/** About the bytes of memory it takes. */
export function sizeOf({ rows: { put, originals }, rejects }: PackedBundle): number {
	return bytesOf(put) + bytesOf(originals) + rejects.reduce((sum, reject) => sum + sizeOfReject(reject), 0);
}

/** Reads the rows as the file has them, by their place from 0. */
export function originalsOf({ originals }: RowBytes): (row: number) => Omit<BundledRow, 'cells'> {
	const reader = new TextReader(originals);
	return (row) => {
		const [line, ...original] = reader.at(row).split(separator);
		return { line: Number(line), original };
	};
}

/** The cells of all rows in the form `cells`, one after the other. */
export function unpackCells({ put }: RowBytes): (string | null)[] {
	const reader = new TextReader(put);
	const cells: (string | null)[] = [];
	for (let row = 0; row < put.count; row += 1)
		for (const cell of reader.at(row).split(separator)) cells.push(cell === '' ? null : cell);
	return cells;
}
