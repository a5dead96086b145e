/** What is wrong with the cells of a row, whatever file they come from, and the words for every fault. Pure. */
import type { RowFault } from './finding.js';
import { maxCellBytes, maxRowBytes } from './limits.js';

/** What goes into `_error`; a fault of one cell adds which. */
export const faultMessages = {
	unclosed_quote: 'a quote is opened here and never closed (a quote within a cell is written twice)',
	stray_quote: 'a quote in the middle of a cell (quote the whole cell and write the quote twice)',
	row_too_long: `longer than ${maxRowBytes / 1024 / 1024} MiB`,
	encoding: 'bytes that are no text in the encoding of the file (--encoding names another)',
	nul: 'a NUL character in a cell',
	cell_too_long: `a cell of more than ${maxCellBytes / 1024 / 1024} MiB`,
	too_few_cells: 'too few cells',
	too_many_cells: 'too many cells',
	bad_json: 'no JSON object',
	unknown_key: 'a key that no earlier line has',
} satisfies Record<RowFault, string>;

/** The first cell that cannot be used, or null. */
export function findCellFault(cells: readonly string[]): { code: RowFault; error: string } | null {
	for (const [index, cell] of cells.entries()) {
		if (cell.includes('\0')) return { code: 'nul', error: `${faultMessages.nul} (cell ${index + 1})` };
		if (isTooLong(cell))
			return { code: 'cell_too_long', error: `${faultMessages.cell_too_long} (cell ${index + 1})` };
	}
	return null;
}

/** Three octets a UTF-16 unit at most: short texts need no count. */
function isTooLong(cell: string): boolean {
	return cell.length * 3 > maxCellBytes && Buffer.byteLength(cell) > maxCellBytes;
}
