/** Where an earlier run left its rejects file. */
import { open, stat, truncate } from 'node:fs/promises';
import { parse } from 'csv-parse/sync';
import { duplicateCode, TableError } from './finding.js';
import { openTable } from './read-table.js';
import { readBytes } from './source.js';
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
 * The last line of the source the file speaks of (0: none), or null when it does not begin as it would, or its last row
 * names no line: then it is another file. A crash may have cut the last row: that is taken off, it comes once more.
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
	const whole = await findWholeRows(path);
	const last = whole.last < start.length ? 0 : await readLine(path, layout, whole);
	if (last !== null && whole.end < size) await truncate(path, whole.end);
	return last;
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

/** Offsets of bytes: where the last whole row begins, and where it ends. */
interface WholeRows {
	last: number;
	end: number;
}

/**
 * By quotes and line feeds alone: rows stand here that cannot be read as rows of a table (NUL, cells that are too long),
 * which is why they were rejected. A quote stands in cells that are quoted only, twice.
 */
async function findWholeRows(path: string): Promise<WholeRows> {
	let [last, end, offset] = [0, 0, 0];
	let isQuoted = false;
	for await (const chunk of readBytes(path)) {
		for (let at = 0; at < chunk.length; at += 1) {
			if (chunk[at] === quote) isQuoted = !isQuoted;
			if (chunk[at] !== lineFeed || isQuoted) continue;
			last = end;
			end = offset + at + 1;
		}
		offset += chunk.length;
	}
	return { last, end };
}

const quote = 0x22;
const lineFeed = 0x0a;

async function readLine(
	path: string,
	{ columns, delimiter }: RejectsLayout,
	{ last, end }: WholeRows,
): Promise<number | null> {
	const file = await open(path);
	try {
		const { buffer } = await file.read(Buffer.alloc(end - last), 0, end - last, last);
		const [cells = []]: string[][] = parse(buffer, { delimiter, relax_column_count: true });
		const line = Number(cells[columns.lastIndexOf('_line')]);
		return Number.isSafeInteger(line) && line > 0 ? line : null;
	} finally {
		await file.close();
	}
}
