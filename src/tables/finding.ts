const maxCellBytes = 1024 * 1024;
/** Maximum octets of a row in UTF-8, because an import batch has at most 4 MiB. */
export const maxRowBytes = 4 * 1024 * 1024;
/** A header with more columns than this probably has another delimiter. */
export const maxColumns = 2_000;
export const sniffBytes = 256 * 1024;

export type RowFault =
	| 'unclosed_quote'
	| 'stray_quote' // a quote in a cell that is not quoted, or text after a closing quote
	| 'too_few_cells'
	| 'too_many_cells'
	| 'nul'
	| 'cell_too_long'
	| 'row_too_long'
	| 'encoding'
	| 'bad_json' // an NDJSON line that is not an object, or has a number with too many digits
	| 'unknown_key'; // a key that first occurs too late to become a column

/**
 * In a bad row, `cells` may hold only the beginning of the line. `nested`: indexes of cells that are JSON objects or
 * arrays.
 */
export type TableRow =
	| { kind: 'row'; line: number; cells: readonly string[]; nested?: readonly number[] }
	| { kind: 'bad'; line: number; code: RowFault; error: string; cells: readonly string[] };

export type TableFault =
	| 'no_such_file'
	| 'directory'
	| 'unreadable'
	| 'empty'
	| 'binary' // zip, xlsx, gz, images, databases
	| 'no_table' // HTML, XML and other text without rows
	| 'json' // one JSON document, instead of an object per line
	| 'wrong_encoding'
	| 'unknown_encoding'
	| 'unsure_encoding' // a code page, but several are plausible
	| 'bad_delimiter'
	| 'bad_header'
	| 'file_exists'
	| 'disk_full'
	| 'disk'; // any other write error

export interface TableErrorOptions {
	hint?: string;
	details?: readonly unknown[];
	/** A path that could not be written. The caller explains how to make it writable. */
	unwritten?: string;
	cause?: unknown;
}

export class TableError extends Error {
	override readonly name = 'TableError';
	readonly code: TableFault;
	readonly hint: string | null;
	readonly details: readonly unknown[] | null;
	readonly unwritten: string | null;

	constructor(code: TableFault, message: string, options: TableErrorOptions = {}) {
		super(message, 'cause' in options ? { cause: options.cause } : undefined);
		this.code = code;
		this.hint = options.hint ?? null;
		this.details = options.details ?? null;
		this.unwritten = options.unwritten ?? null;
	}
}

export const rejectColumns: readonly string[] = ['_line', '_code', '_error'];

/** `_code` of a row that repeats an address of the same import. The user need not correct it. */
export const duplicateCode = 'duplicate';

export interface RejectedRow {
	line: number;
	code: string;
	error: string;
	cells: readonly string[];
}

const rejectsName = /\.rejects(?:-(\d{1,9}))?\.csv$/;

export function nextRejectsPath(path: string): string {
	const found = rejectsName.exec(path);
	if (found === null) return `${path}.rejects.csv`;
	return `${path.slice(0, found.index)}.rejects-${Number(found[1] ?? 1) + 1}.csv`;
}

export function isRejectColumn(name: string): boolean {
	return rejectColumns.includes(name.trim().toLowerCase());
}

/** A rejects file ends with the columns that the user left out of the import. Returns the index of the first one. */
export function findLeftOutStart(header: readonly string[]): number {
	if (findCodeColumn(header) === null) return header.length;
	return header.findLastIndex(isRejectColumn) + 1;
}

export function findCodeColumn(header: readonly string[]): number | null {
	const names = header.map((name) => name.trim().toLowerCase());
	return rejectColumns.every((name) => names.includes(name)) ? names.indexOf('_code') : null;
}

export const faultMessages = {
	unclosed_quote: 'a quote is opened here and never closed (a quote within a cell is written twice)',
	stray_quote: 'a quote in the middle of a cell (quote the whole cell and write the quote twice)',
	row_too_long: `longer than ${maxRowBytes / 1024 / 1024} MiB`,
	encoding: 'bytes that are not text in the encoding of the file (--encoding names another)',
	nul: 'a NUL character in a cell',
	cell_too_long: `a cell of more than ${maxCellBytes / 1024 / 1024} MiB`,
	too_few_cells: 'too few cells',
	too_many_cells: 'too many cells',
	bad_json: 'no JSON object',
	unknown_key: 'a key that no earlier line has',
} satisfies Record<RowFault, string>;

export function findCellFault(cells: readonly string[]): { code: RowFault; error: string } | null {
	for (const [index, cell] of cells.entries()) {
		if (cell.includes('\0')) return { code: 'nul', error: `${faultMessages.nul} (cell ${index + 1})` };
		if (isTooLong(cell))
			return { code: 'cell_too_long', error: `${faultMessages.cell_too_long} (cell ${index + 1})` };
	}
	return null;
}

/** A UTF-16 unit takes at most three octets, so skip the count for short texts. */
function isTooLong(cell: string): boolean {
	return cell.length * 3 > maxCellBytes && Buffer.byteLength(cell) > maxCellBytes;
}
