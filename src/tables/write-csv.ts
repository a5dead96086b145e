/** NUL and lone surrogates are written unchanged. One empty cell is `""`: blank lines are skipped. */
export function formatCsvRow(cells: readonly string[], delimiter = ','): string {
	if (cells.length === 1 && cells[0] === '') return '""\n';
	return `${cells.map((cell) => formatCell(cell, delimiter)).join(delimiter)}\n`;
}

/**
 * Guards a cell that a spreadsheet would take for a formula (OWASP, "CSV Injection"). A cell also begins after each
 * semicolon and tab, since a spreadsheet that splits there ignores our quotes. The apostrophe is text: such a file is
 * for reading, not for importing.
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
		// Quotes and blanks may come before a cell that begins within ours.
		isStart = /[;\t\r\n]/.test(char) || (isStart && !isFormula && at > 0 && /["\s]/.test(char));
	}
	return guarded + cell.slice(written);
}

const formulaSigns = '=+-@\uff1d\uff0b\uff0d\uff20';

/** A leading BOM would be taken for the file's; some readers strip blanks outside quotes. */
export function formatCell(cell: string, delimiter = ','): string {
	if (cell === '') return cell;
	const isPlain = !/["\r\n]|^[\s\uFEFF]|\s$/.test(cell) && !cell.includes(delimiter);
	return isPlain ? cell : `"${cell.replaceAll('"', '""')}"`;
}
