/**
 * Parses one block of UTF-8 bytes into rows, with the line each begins on and the bytes used. Pure and synchronous. The
 * ends of rows are scanned first, so that csv-parse gets only valid rows, all in one call, and a broken one affects no
 * other.
 */
import { isUtf8 } from 'node:buffer';
import { parse } from 'csv-parse/sync';
import { type QuoteFault, type RowSpan, type Scanned, scanRows, type TextBlock } from './scan-rows.js';

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
	const whole = spans.filter(({ fault }) => fault === null);
	const { bytes } = block;
	// Checked together first; only an error leads to a check of each.
	const joined = joinRows(bytes, spans, whole);
	const isText = isUtf8(joined);
	const cells = cellsOf(joined, block.delimiter);
	if (cells.length !== whole.length) throw new Error(`${whole.length} rows were read as ${cells.length}`);
	let next = 0;
	const rows = spans.map(({ begin, end, line, fault }): RawRow => {
		const own = bytes.subarray(begin, end);
		if (fault !== null) return { kind: 'broken', line, fault, bytes: own };
		return { kind: 'record', line, cells: cells[next++] ?? [], isText: isText || isUtf8(own) };
	});
	return { rows, ...rest };
}

/** Without the broken rows; the bytes themselves where none is broken. */
function joinRows(bytes: Buffer, spans: readonly RowSpan[], whole: readonly RowSpan[]): Buffer {
	const [first, last] = [whole[0], whole.at(-1)];
	if (first === undefined || last === undefined) return Buffer.alloc(0);
	if (whole.length === spans.length) return bytes.subarray(first.begin, last.end);
	return Buffer.concat(whole.map(({ begin, end }) => bytes.subarray(begin, end)));
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
