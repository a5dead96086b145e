/** A bundle as an import puts it, whether it was made here or came packed from the thread that reads. */
import type { Ack, ImportCounts, Imports } from '../api/capabilities.js';
import type { RejectedRow } from '../cli/tabular/finding.js';
import type { Mapping } from '../cli/tabular/header.js';
import type { Bundle, BundledRow } from './import-bundles.js';
import { toImportRow } from './import-rows.js';
import { type PackedBundle, unpackCells, unpackOriginals } from './packed-bundles.js';

export interface Load {
	/** Number of its first row among the rows put. */
	first: number;
	/** Rows it puts. */
	count: number;
	/** About the characters it keeps in memory. */
	size: number;
	/** Rows refused before they could be put. */
	rejects: RejectedRow[];
	put(imports: Imports, session: string): Promise<Ack<ImportCounts>>;
	/** Those of its rows as the file has them, by their place from 0. */
	originals(): readonly Omit<BundledRow, 'cells'>[];
	withoutFirst(count: number): Load;
}

/** Characters of a row of usual length; what was bundled here is not measured. */
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
		originals: () => rows,
		withoutFirst: (count) => loadRows({ ...bundle, first: first + count, rows: rows.slice(count) }, mapping),
	};
}

/** A packed bundle. Of its checked rows none is looked at here. */
export function loadPacked(packed: PackedBundle, mapping: Mapping): Load {
	const { first, rejects, lines, rows } = packed;
	const columns = columnsOf(mapping);
	return {
		first,
		count: lines.length,
		size: packed.original.length + rows.text.length,
		rejects,
		put: (imports, session) => {
			if (rows.form === 'cells')
				return imports.put(session, { first, columns, cells: unpackCells(rows.text) });
			if (imports.putChecked === undefined) throw new Error('checked rows are for an engine in this process');
			const { marks, text } = rows;
			return imports.putChecked(session, { first, variables: variablesOf(mapping), marks, text });
		},
		originals: () => unpackOriginals(packed),
		withoutFirst: (count) => loadRows(unpackRows(packed, mapping), mapping).withoutFirst(count),
	};
}

/** Only after a run that was broken off in the middle of a batch, so it need not be fast. */
function unpackRows(packed: PackedBundle, mapping: Mapping): Bundle {
	const rows = unpackOriginals(packed).flatMap(({ line, original }) => {
		const made = toImportRow(original, mapping);
		return made.kind === 'cells' ? [{ line, original, cells: made.cells }] : [];
	});
	return { first: packed.first, rows, rejects: packed.rejects };
}

export function columnsOf({ columns }: Mapping): string[] {
	return columns.map(({ target }) => target);
}

function variablesOf(mapping: Mapping): string[] {
	const prefix = 'meta.';
	return columnsOf(mapping).flatMap((column) =>
		column.startsWith(prefix) ? [column.slice(prefix.length)] : [],
	);
}
