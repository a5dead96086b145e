/** Where an earlier run left its rejects file. */
import { open, stat, truncate } from 'node:fs/promises';
import { duplicateCode, TableError } from './finding.js';
import { openTable } from './read-table.js';
import { formatCsvRow } from './write-csv.js';

/** What a rejects file begins with, and how its cells are parted. */
export interface RejectsLayout {
	columns: readonly string[];
	delimiter: string;
	/** Empty, or the mark of the order of bytes that spreadsheets know UTF-8 by. */
	mark: '' | '\uFEFF';
}

/** The first bytes of the file. */
export function formatRejectsHeader({ columns, delimiter, mark }: RejectsLayout): string {
	return mark + formatCsvRow(columns, delimiter);
}

/**
 * Whether the file is one of rejects with these columns and nothing in it waits to be mended: importing it would change
 * nothing, so nothing is lost with it.
 */
export async function holdsDuplicatesOnly(path: string, layout: RejectsLayout): Promise<boolean> {
	const { columns, delimiter } = layout;
	const table = await openTable(path, { encoding: 'utf-8', delimiter }).catch(nullIfNoTable);
	if (table === null) return false;
	try {
		if (table.header.join('\0') !== columns.join('\0')) return false;
		const at = columns.lastIndexOf('_code');
		for await (const row of table.rows)
			if (row.kind === 'bad' || row.cells[at] !== duplicateCode) return false;
		return true;
	} finally {
		await table.close();
	}
}

function nullIfNoTable(error: unknown): null {
	if (error instanceof TableError) return null;
	throw error;
}

/**
 * The last line of the source the file speaks of (0: none), or null when it does not begin as it would, so is
 * another file. A crash may have cut the last row: that is taken off, it comes once more. A row that is whole formats
 * to the bytes it was read from, so their sum is where the whole part ends.
 */
export async function resumeRejects(path: string, layout: RejectsLayout): Promise<number | null> {
	const { size } = await stat(path);
	const start = Buffer.from(formatRejectsHeader(layout));
	const found = await readStart(path, Math.min(size, start.length));
	if (!found.equals(start.subarray(0, found.length))) return null;
	if (size < start.length) {
		await truncate(path, 0);
		return 0;
	}
	return keepWholeRows(path, { ...layout, size, headerBytes: start.length });
}

async function readStart(path: string, length: number): Promise<Buffer> {
	const file = await open(path);
	try {
		const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0);
		return buffer.subarray(0, bytesRead);
	} finally {
		await file.close();
	}
}

async function keepWholeRows(
	path: string,
	{ columns, delimiter, size, headerBytes }: RejectsLayout & { size: number; headerBytes: number },
): Promise<number> {
	const table = await openTable(path, { encoding: 'utf-8', delimiter });
	const column = columns.lastIndexOf('_line');
	let whole = headerBytes;
	let last = 0;
	for await (const row of table.rows) {
		const end = whole + Buffer.byteLength(formatCsvRow(row.cells, delimiter));
		if (row.kind === 'bad' || end > size) {
			await truncate(path, whole);
			break;
		}
		whole = end;
		last = Number(row.cells[column]) || last;
	}
	await table.close();
	return last;
}
