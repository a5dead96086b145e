/** What is wrong with a table or with one of its rows, in words for people and a code for scripts. */
import { CliError, type CliErrorOptions } from '../errors.js';

export type RowFault =
	| 'unclosed_quote'
	| 'stray_quote' // a quote in a cell that is not quoted, or text after a closing quote
	| 'too_few_cells'
	| 'too_many_cells'
	| 'nul' // U+0000 in a cell
	| 'cell_too_long'
	| 'row_too_long'
	| 'encoding' // bytes that are no text in the encoding of the file
	| 'bad_json' // a line of NDJSON that is no object, or holds what no text can be made of
	| 'unknown_key'; // a key that is no column: it comes too late to become one

/**
 * One row of a table. `line` counts from 1 and is the line the row begins on. A bad row's cells are those that could
 * be told apart; of a row that could not be split at all, its first line as one cell.
 */
export type TableRow =
	| { kind: 'row'; line: number; cells: readonly string[] }
	| { kind: 'bad'; line: number; code: RowFault; error: string; cells: readonly string[] };

export type TableFault =
	| 'no_such_file'
	| 'directory'
	| 'unreadable'
	| 'empty'
	| 'binary' // zip, xlsx, gz, images, databases
	| 'json' // one JSON document, where a line an object is read
	| 'wrong_encoding'
	| 'unknown_encoding'
	| 'bad_delimiter'
	| 'bad_header'
	| 'file_exists';

/** A file that cannot be read or written as a table at all (exit 2). Says what it is and what to do. */
export class TableError extends CliError {
	override readonly name = 'TableError';
	constructor(code: TableFault, message: string, options: CliErrorOptions = {}) {
		super(code, 2, message, options);
	}
}

/** The columns of a rejects file that are no data; left out when one is read. */
export const rejectColumns: readonly string[] = ['_line', '_code', '_error'];

/** The code of a row whose address an earlier row of the same import has: nothing to mend. */
export const duplicateCode = 'duplicate';

export interface RejectedRow {
	/** Line of the source the row begins on. */
	line: number;
	code: string;
	error: string;
	/** As many as the source's row has. */
	cells: readonly string[];
}

/** Without regard to case and to blanks around it. */
export function isRejectColumn(name: string): boolean {
	return rejectColumns.includes(name.trim().toLowerCase());
}

/**
 * Where the columns begin that the import of this rejects file's source had left out: they stand behind `_line`, `_code`,
 * `_error`, so that the file is read again as it is. The header's length where there are none.
 */
export function findLeftOutStart(header: readonly string[]): number {
	if (findCodeColumn(header) === null) return header.length;
	return header.findLastIndex(isRejectColumn) + 1;
}

/** Where the codes stand if this is the header of a rejects file, else null. */
export function findCodeColumn(header: readonly string[]): number | null {
	const names = header.map((name) => name.trim().toLowerCase());
	return rejectColumns.every((name) => names.includes(name)) ? names.indexOf('_code') : null;
}
