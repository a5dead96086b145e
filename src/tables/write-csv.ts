/** Writes rows by RFC 4180, but with a bare line feed. Reading them again gives the same cells. */

/**
 * One line with its line end. A cell is quoted where necessary; a row of one empty cell is `""`, since a blank line
 * would be skipped. NUL and lone surrogates are written unchanged: the caller refuses them where needed.
 */
export function formatCsvRow(cells: readonly string[], delimiter = ','): string {
	if (cells.length === 1 && cells[0] === '') return '""\n';
	return `${cells.map((cell) => formatCell(cell, delimiter)).join(delimiter)}\n`;
}

/**
 * Guards a cell that a spreadsheet would take for a formula, also after an apostrophe of its own (OWASP, "CSV
 * Injection"), and with full-width signs. Where a spreadsheet splits lines at semicolons or tabs, a cell begins after
 * each of them, and after a line end, since it ignores our quotes. The apostrophe is text: such a file is for reading,
 * not for importing.
 */
export function guardFormula(cell: string): string {
	if (!/[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/.test(cell)) return cell;
	let guarded = '';
	let written = 0;
	let isStart = true;
	for (let at = 0; at < cell.length; at += 1) {
		const char = cell[at] ?? '';
		const isFormula: boolean = isStart && formulaSigns.includes(char);
		if (isFormula || (at === 0 && /[\t\r\n]/.test(char))) {
			guarded += `${cell.slice(written, at)}'`;
			written = at;
		}
		// Quotes and blanks may come before the beginning of a cell, but not at the beginning of ours, which has quotes of
		// its own.
		isStart = /[;\t\r\n]/.test(char) || (isStart && !isFormula && at > 0 && /["\s]/.test(char));
	}
	return guarded + cell.slice(written);
}

const formulaSigns = '=+-@\uff1d\uff0b\uff0d\uff20';

/**
 * Quoted where necessary. A leading BOM would be taken for the file's; some readers keep leading and trailing blanks only
 * in quotes.
 */
export function formatCell(cell: string, delimiter = ','): string {
	if (cell === '') return cell;
	const isPlain = !/["\r\n]|^[\s\uFEFF]|\s$/.test(cell) && !cell.includes(delimiter);
	return isPlain ? cell : `"${cell.replaceAll('"', '""')}"`;
}
