/** A bundle as an import puts it, whether it was made here or came packed from the thread that reads. */
import type { Ack, ImportCounts, Imports } from '../api/capabilities.js';
import type { RejectedRow } from '../cli/tabular/finding.js';
import type { Mapping } from '../cli/tabular/header.js';
import type { Bundle, BundledRow } from './import-bundles.js';
import { toImportRow } from './import-rows.js';
import { type LentBundle, originalsOf, type PackedBundle, sizeOf, unpackCells } from './packed-bundles.js';

export interface Load {
	/** Number of its first row among the rows put. */
	first: number;
	/** Rows it puts. */
	count: number;
	/** About the bytes it keeps in memory. */
	size: number;
	/** Rows refused before they could be put. */
	rejects: RejectedRow[];
	put(imports: Imports, session: string): Promise<Ack<ImportCounts>>;
	/** One of its rows as the file has it, by its place from 0. */
	original(row: number): Omit<BundledRow, 'cells'>;
	withoutFirst(count: number): Load;
	/** It is settled: nothing of it is asked for any more. */
	settle(): void;
}

/** Bytes of a row of usual length; what was bundled here is not measured. */
const usualRowLength = 100;

/** A bundle made in this thread. */
export function loadRows(bundle: Bundle, mapping: Mapping): Load {
	const { first, rows, rejects } = bundle;
	const columns = columnsOf(mapping);
	return {
		first,
		count: rows.length,
		size: rows.length * usualRowLength,
		rejects,
		put: (imports, session) =>
			imports.put(session, { first, columns, cells: rows.flatMap((row) => row.cells) }),
		original: (row) => found(rows[row]),
		withoutFirst: (count) => loadRows({ ...bundle, first: first + count, rows: rows.slice(count) }, mapping),
		settle: () => undefined,
	};
}

/** A packed bundle. Of its checked rows none is looked at here. */
export function loadPacked(packed: LentBundle, mapping: Mapping): Load {
	const { first, rejects, rows } = packed;
	const columns = columnsOf(mapping);
	return {
		first,
		count: rows.put.count,
		size: sizeOf(packed),
		rejects,
		put: (imports, session) => {
			if (packed.form === 'cells') return imports.put(session, { first, columns, cells: unpackCells(rows) });
			if (imports.putChecked === undefined) throw new Error('checked rows are for an engine in this process');
			return imports.putChecked(session, { first, variables: variablesOf(mapping), rows: rows.put });
		},
		original: originalsOf(rows),
		withoutFirst: (count) => loadRows(unpackRows(packed, mapping), mapping).withoutFirst(count),
		settle: () => packed.giveBack(),
	};
}

/** Only after a run that was broken off in the middle of a batch, so it need not be fast. */
function unpackRows({ first, rows: packed, rejects }: PackedBundle, mapping: Mapping): Bundle {
	const originalOf = originalsOf(packed);
	const rows = Array.from({ length: packed.put.count }, (_, row) => {
		const { line, original } = originalOf(row);
		const made = toImportRow(original, mapping);
		return made.kind === 'cells' ? [{ line, original, cells: made.cells }] : [];
	}).flat();
	return { first, rows, rejects };
}

function found<T>(row: T | undefined): T {
	if (row === undefined) throw new RangeError('a row outside of its batch');
	return row;
}

/** What each column of a batch is, in the order of the mapping: `email`, `name`, `meta.city`. */
export function columnsOf({ columns }: Mapping): string[] {
	return columns.map(({ target }) => target);
}

function variablesOf(mapping: Mapping): string[] {
	const prefix = 'meta.';
	return columnsOf(mapping).flatMap((column) =>
		column.startsWith(prefix) ? [column.slice(prefix.length)] : [],
	);
}
