/** Writes rows as RFC 4180 says, but with a bare line feed. Reading them again gives the same cells. */

/**
 * One line with its line end. A cell is quoted when it has to be; a row of one empty cell is `""`, since a blank line
 * would be skipped. NUL and lone surrogates are written as they are: the caller refuses them if it must.
 */
export function formatCsvRow(cells: readonly string[], delimiter = ','): string {
	if (cells.length === 1 && cells[0] === '') return '""\n';
	return `${cells.map((cell) => formatCell(cell, delimiter)).join(delimiter)}\n`;
}

/**
 * A spreadsheet takes cells that begin so for formulas, also behind an apostrophe of its own making (OWASP, "CSV
 * Injection"). The apostrophe is text: such a file is to be looked at, not to be imported.
 */
export function guardFormula(cell: string): string {
	return /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
}

/** A leading BOM would be taken for the file's; leading and trailing blanks survive only in quotes in some readers. */
function formatCell(cell: string, delimiter: string): string {
	const isPlain = !/["\r\n]|^[\s\uFEFF]|\s$/.test(cell) && !cell.includes(delimiter);
	return isPlain ? cell : `"${cell.replaceAll('"', '""')}"`;
}
