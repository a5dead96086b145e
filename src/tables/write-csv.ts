/** Keeps NUL and lone surrogates. A row with one empty cell becomes `""`, because readers skip blank lines. */
export function formatCsvRow(cells: readonly string[], delimiter = ','): string {
	if (cells.length === 1 && cells[0] === '') return '""\n';
	return `${cells.map((cell) => formatCell(cell, delimiter)).join(delimiter)}\n`;
}

/**
 * Guards a cell that a spreadsheet would take for a formula (OWASP, "CSV Injection"). A spreadsheet that splits at
 * semicolons and tabs ignores the quotes, so a cell also starts after each semicolon or tab. The inserted apostrophe
 * changes the text, so such a file is not for importing.
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
		// After a separator within the cell, quotes and blanks may precede the formula.
		isStart = /[;\t\r\n]/.test(char) || (isStart && !isFormula && at > 0 && /["\s]/.test(char));
	}
	return guarded + cell.slice(written);
}

const formulaSigns = '=+-@\uff1d\uff0b\uff0d\uff20';

/** Quotes a cell with a leading BOM, which readers would drop, or with outer blanks, which some readers strip. */
export function formatCell(cell: string, delimiter = ','): string {
	if (cell === '') return cell;
	const isPlain = !/["\r\n]|^[\s\uFEFF]|\s$/.test(cell) && !cell.includes(delimiter);
	return isPlain ? cell : `"${cell.replaceAll('"', '""')}"`;
}
