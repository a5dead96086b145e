/** Where an earlier run left its rejects file. */
import { open, stat, truncate } from 'node:fs/promises';
import { openTable } from './read-table.js';
import { formatCsvRow } from './write-csv.js';

/**
 * The last line of the source the file speaks of (0: none), or null when it does not begin with `header`, so is
 * another file. A crash may have cut the last row: that is taken off, it comes once more. A row that is whole formats
 * to the bytes it was read from, so their sum is where the whole part ends.
 */
export async function resumeRejects(path: string, header: readonly string[]): Promise<number | null> {
	const { size } = await stat(path);
	const start = Buffer.from(formatCsvRow(header));
	const found = await readStart(path, Math.min(size, start.length));
	if (!found.equals(start.subarray(0, found.length))) return null;
	if (size < start.length) {
		await truncate(path, 0);
		return 0;
	}
	return keepWholeRows(path, { size, headerBytes: start.length, column: header.lastIndexOf('_line') });
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
	{ size, headerBytes, column }: { size: number; headerBytes: number; column: number },
): Promise<number> {
	const table = await openTable(path, { encoding: 'utf8', delimiter: ',' });
	let whole = headerBytes;
	let last = 0;
	for await (const row of table.rows) {
		const end = whole + Buffer.byteLength(formatCsvRow(row.cells));
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
