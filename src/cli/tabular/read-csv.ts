/**
 * CSV as a stream of rows, with constant memory: blocks of bytes come in as fast as rows are taken. A row that cannot
 * be read is a finding with its line, never an exception, and reading goes on with the next line.
 */
import type { RowFault, TableRow } from './finding.js';
import { maxRowBytes } from './limits.js';
import { endOfLine, parseBlock, type RawRecord, skipLineEnds } from './parse-block.js';
import { faultMessages, findCellFault } from './row-faults.js';

export interface CsvOptions {
	delimiter: string;
}

/**
 * `source` is UTF-8 without a byte order mark, cut anywhere. The first row is the header where there is one, and its
 * width is the width every row has to have.
 */
export async function* readCsv(
	source: AsyncIterable<Uint8Array>,
	options: CsvOptions,
): AsyncGenerator<TableRow, void, undefined> {
	const reader = new CsvReader(options.delimiter);
	for await (const chunk of source) yield* reader.push(chunk);
	yield* reader.finish();
}

const blockBytes = 64 * 1024;
/** Of a row that cannot be split, so much is shown. */
const shownCharacters = 1000;

/** The state between blocks: the bytes not used up yet, at most a row of the longest kind and one chunk. */
class CsvReader {
	readonly #delimiter: string;
	#width: number | null = null;
	#line = 1;
	#chunks: Uint8Array[] = [];
	#pending = 0;
	/** Parsing waits for so many bytes; doubled where a block holds no whole row, so that a long row costs no square. */
	#wanted = blockBytes;
	/** The rest of a row too long for memory is being passed over. */
	#isSkipping = false;

	constructor(delimiter: string) {
		this.#delimiter = delimiter;
	}

	*push(chunk: Uint8Array): Generator<TableRow> {
		this.#chunks.push(chunk);
		this.#pending += chunk.length;
		if (this.#pending >= this.#wanted) yield* this.#parse(false);
	}

	*finish(): Generator<TableRow> {
		yield* this.#parse(true);
	}

	*#parse(isLast: boolean): Generator<TableRow> {
		let bytes: Buffer = Buffer.concat(this.#chunks);
		while (bytes.length > 0) {
			if (this.#isSkipping) bytes = this.#skipRest(bytes, isLast);
			if (this.#isSkipping) break;
			const parsed = parseBlock({ bytes, delimiter: this.#delimiter, line: this.#line, isLast });
			for (const record of parsed.records) yield this.#check(record);
			this.#line = parsed.line;
			bytes = bytes.subarray(parsed.used);
			const bad = parsed.fault === null ? null : this.#dropLine(bytes, parsed.fault, isLast);
			if (bad === null) break;
			yield bad.row;
			bytes = bytes.subarray(bad.used);
		}
		this.#keep(bytes);
	}

	#keep(rest: Buffer): void {
		this.#chunks = rest.length === 0 ? [] : [Buffer.from(rest)];
		this.#pending = rest.length;
		this.#wanted = Math.max(blockBytes, Math.min(rest.length * 2, maxRowBytes + blockBytes));
	}

	/** Passes over the rest of a row that was given up, up to its line end. */
	#skipRest(bytes: Buffer, isLast: boolean): Buffer {
		const end = endOfLine(bytes, 0, isLast);
		if (end === -1) return bytes.subarray(withoutCr(bytes));
		this.#isSkipping = false;
		this.#line += 1;
		return bytes.subarray(end);
	}

	/** The first line as a finding; null when its end has not come yet and may still. */
	#dropLine(bytes: Buffer, code: RowFault, isLast: boolean): { row: TableRow; used: number } | null {
		const begin = skipLineEnds(bytes, 0, bytes.length);
		const end = endOfLine(bytes, begin, isLast);
		if (end === -1 && !isLast && bytes.length <= maxRowBytes) return null;
		// Blank lines before it are counted as parseBlock counts them: it ran on these bytes and stopped here.
		const line = this.#line + countBlankLines(bytes, begin);
		this.#isSkipping = end === -1;
		this.#line = line + (end === -1 ? 0 : 1);
		const shown = bytes.subarray(
			begin,
			Math.min(end === -1 ? bytes.length : end, begin + shownCharacters * 4),
		);
		const cells = [cutTo(shownCharacters, shown.toString().replace(/[\r\n]+$/, ''))];
		const row: TableRow = { kind: 'bad', line, code, error: faultMessages[code], cells };
		return { row, used: end === -1 ? withoutCr(bytes) : end };
	}

	#check({ line, cells, isText }: RawRecord): TableRow {
		this.#width ??= cells.length;
		const fault = isText
			? findFault(cells, this.#width)
			: { code: 'encoding' as const, error: faultMessages.encoding };
		if (fault === null) return { kind: 'row', line, cells };
		return { kind: 'bad', line, ...fault, cells: this.#joinSurplus(cells, this.#width) };
	}

	/** What is behind the last column, as one cell: a million of them are a megabyte in the file, and fifty in memory. */
	#joinSurplus(cells: readonly string[], width: number): readonly string[] {
		if (cells.length <= width + 1) return cells;
		return [...cells.slice(0, width), cells.slice(width).join(this.#delimiter)];
	}
}

/** A copy: what is cut out of a text keeps all of it in memory. */
function cutTo(length: number, text: string): string {
	return text.length <= length ? text : Buffer.from(text.slice(0, length)).toString();
}

function findFault(cells: readonly string[], width: number): { code: RowFault; error: string } | null {
	const inCell = findCellFault(cells);
	if (inCell !== null || cells.length === width) return inCell;
	const code = cells.length < width ? 'too_few_cells' : 'too_many_cells';
	const found = cells.length === 1 ? '1 cell' : `${cells.length} cells`;
	return { code, error: `${found} where the header has ${width}` };
}

/** A last CR stays: the LF that belongs to it may come with the next block. */
function withoutCr(bytes: Buffer): number {
	return bytes.length - (bytes.at(-1) === 13 ? 1 : 0);
}

function countBlankLines(bytes: Buffer, end: number): number {
	let lines = 0;
	for (let at = 0; at < end; at += 1) if (bytes[at] === 10 || bytes[at + 1] !== 10) lines += 1;
	return lines;
}
