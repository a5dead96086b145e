/**
 * Parses one block of UTF-8 bytes into rows, with the line each begins on and the bytes used. Pure and synchronous. The
 * ends of rows are scanned first: a row without quotes is cut at its delimiters, and csv-parse gets the others that are
 * valid, all in one call, so a broken one affects no other.
 */
import { isUtf8 } from 'node:buffer';
import { parse } from 'csv-parse/sync';
import {
	isLineEnd,
	type QuoteFault,
	type RowSpan,
	type Scanned,
	scanRows,
	type TextBlock,
} from './scan-rows.js';

export type RawRow =
	/** `isText` false: some of its bytes are not UTF-8 (read as U+FFFD). */
	| { kind: 'record'; line: number; cells: readonly string[]; isText: boolean }
	/** `bytes`: its first line, which is all that was skipped. */
	| { kind: 'broken'; line: number; fault: QuoteFault; bytes: Buffer };

export interface Parsed extends Omit<Scanned, 'spans'> {
	rows: RawRow[];
}

/** Blank lines are no rows. */
export function parseBlock(block: TextBlock): Parsed {
	const { spans, ...rest } = scanRows(block);
	const { bytes, delimiter } = block;
	// Checked together first; only an error leads to a check of each.
	const isText = isUtf8(bytes.subarray(spans[0]?.begin ?? 0, spans.at(-1)?.end ?? 0));
	const quoted = spans.filter(({ fault, isPlain }) => fault === null && !isPlain);
	const joined = Buffer.concat(quoted.flatMap((span) => withoutGaps(bytes, span)));
	const cells = cellsOf(joined, delimiter);
	if (cells.length !== quoted.length) throw new Error(`${quoted.length} rows were read as ${cells.length}`);
	let next = 0;
	const rows = spans.map((span): RawRow => {
		const { begin, end, line, fault, isPlain } = span;
		const own = bytes.subarray(begin, end);
		if (fault !== null) return { kind: 'broken', line, fault, bytes: own };
		return {
			kind: 'record',
			line,
			cells: isPlain ? plainCells(bytes, span, delimiter) : (cells[next++] ?? []),
			isText: isText || isUtf8(own),
		};
	});
	return { rows, ...rest };
}

function withoutGaps(bytes: Buffer, { begin, end, gaps }: RowSpan): Buffer[] {
	const edges = [begin, ...gaps.flat(), end];
	return edges.flatMap((edge, at) => (at % 2 === 0 ? [bytes.subarray(edge, edges[at + 1])] : []));
}

/** A row without quotes ends with its first line and has a cell between each two delimiters (RFC 4180, 2). */
function plainCells(bytes: Buffer, { begin, end }: RowSpan, delimiter: string): string[] {
	let last = end;
	while (last > begin && isLineEnd(bytes[last - 1])) last -= 1;
	// A text of its own: cells that are kept keep the row, not the block.
	return bytes.toString('utf8', begin, last).split(delimiter);
}

function cellsOf(bytes: Buffer, delimiter: string): string[][] {
	if (bytes.length === 0) return [];
	return parse(bytes, {
		delimiter,
		// All three at once: files joined from several systems have mixed line ends.
		record_delimiter: ['\r\n', '\n', '\r'],
		relax_column_count: true,
		skip_empty_lines: true,
	});
}
