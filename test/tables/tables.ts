/** Tables for tests: bytes cut into chunks, and whole tables read into arrays. */

import type { TableRow } from '../../src/tables/finding.js';
import { openTable, type TableOptions } from '../../src/tables/read-table.js';

export async function* inChunks(bytes: Uint8Array, size = 64 * 1024): AsyncGenerator<Uint8Array> {
	for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Returns the header and rows that `openTable` reads from the text or bytes. */
export async function readTable(
	content: string | Uint8Array,
	options: TableOptions & { chunk?: number } = {},
): Promise<{ header: readonly string[]; rows: TableRow[]; encoding: string; delimiter: string }> {
	const { chunk, ...rest } = options;
	const table = await openTable({ name: 'people.csv', stream: inChunks(Buffer.from(content), chunk) }, rest);
	const rows: TableRow[] = [];
	for await (const row of table.rows) rows.push(row);
	return { header: table.header, rows, encoding: table.encoding, delimiter: table.delimiter };
}

export function cellsOf(rows: readonly TableRow[]): (readonly string[])[] {
	return rows.flatMap((row) => (row.kind === 'row' ? [row.cells] : []));
}

/** Returns `line code` of the bad rows. */
export function faultsOf(rows: readonly TableRow[]): string[] {
	return rows.flatMap((row) => (row.kind === 'bad' ? [`${row.line} ${row.code}`] : []));
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
	const found: T[] = [];
	for await (const item of items) found.push(item);
	return found;
}
