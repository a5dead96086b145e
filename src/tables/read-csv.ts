/**
 * CSV as a stream of rows, with constant memory: blocks of bytes are read as fast as rows are consumed. An unreadable
 * row is a finding with its line, never an exception, and the next line is read.
 */
import { isEmailAddress } from '../api/address.js';
import { faultMessages, findCellFault, maxRowBytes, type RowFault, type TableRow } from './finding.js';
import { parseBlock, type RawRow } from './parse-block.js';
import { endOfLine, LongRow, type QuoteFault } from './scan-rows.js';

export interface CsvOptions {
	delimiter: string;
	/**
	 * The number of columns at the end of the header that do not count (0); rows may have them too, as long as they are
	 * blank.
	 */
	blankColumns?: number;
}

/**
 * `source` is UTF-8 without a byte order mark, cut anywhere. The first row is the header where there is one, and every
 * row must have its width.
 */
export async function* readCsv(
	source: AsyncIterable<Uint8Array>,
	options: CsvOptions,
): AsyncGenerator<TableRow, void, undefined> {
	const reader = new CsvReader(options);
	for await (const chunk of source) yield* reader.push(chunk);
	yield* reader.finish();
}

const blockBytes = 64 * 1024;
/** Cells that wait for their row's turn are copied by the garbage collector: these fit its youngest space. */
const rowsAtOnce = 200;
/** The shown part of a row that cannot be split. */
const shownCharacters = 1000;
/** Lines after a quote that is open for longer than a row may be: they show whether it was forgotten. */
const triedLines = 100;

/** A row of which only the beginning is kept. */
interface Passed {
	line: number;
	fault: QuoteFault | null;
	cells: readonly string[];
	rest: LongRow;
}

/** The state between blocks: the bytes not used yet, at most a row of the maximum length and one chunk. */
class CsvReader {
	readonly #delimiter: string;
	readonly #blankColumns: number;
	#width: number | null = null;
	#line = 1;
	#chunks: Uint8Array[] = [];
	#pending = 0;
	/**
	 * Parsing waits for this many bytes; doubled where a block holds no whole row, so that the time for a long row stays
	 * linear.
	 */
	#wanted = blockBytes;
	/** The row being skipped because it is too long for memory. */
	#passed: Passed | null = null;

	constructor({ delimiter, blankColumns = 0 }: CsvOptions) {
		this.#delimiter = delimiter;
		this.#blankColumns = blankColumns;
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
		// Skipping ends with the file, also where its last byte has been skipped already.
		while (bytes.length > 0 || (isLast && this.#passed !== null)) {
			if (this.#passed !== null) {
				const { used, hasEnded } = this.#passed.rest.pass(bytes, isLast);
				bytes = bytes.subarray(used);
				if (!hasEnded) break;
				yield this.#endPassed(this.#passed);
			}
			const delimiter = this.#delimiter;
			const { rows, used, line, long } = parseBlock({
				...{ bytes, delimiter, line: this.#line, isLast },
				limit: rowsAtOnce,
			});
			for (const row of rows) yield this.#check(row);
			this.#line = line;
			bytes = bytes.subarray(used);
			if (rows.length === rowsAtOnce) continue;
			if (long === null) break;
			bytes = yield* this.#giveUp(bytes, long.fault);
		}
		this.#keep(bytes);
	}

	/** Skips a row from here on; for a forgotten quote only the first line. */
	*#giveUp(bytes: Buffer, fault: QuoteFault | null): Generator<TableRow, Buffer> {
		const line = this.#line;
		const end = endOfLine(bytes.subarray(0, maxRowBytes), 0, false);
		const cells = [showLine(end === -1 ? bytes : bytes.subarray(0, end))];
		if (fault === null && end !== -1 && this.#isForgotten(bytes.subarray(end, maxRowBytes))) {
			yield { kind: 'bad', line, code: 'unclosed_quote', error: faultMessages.unclosed_quote, cells };
			this.#line += 1;
			return bytes.subarray(end);
		}
		const rest = new LongRow({ delimiter: this.#delimiter, heedsQuotes: fault === null });
		this.#passed = { line, fault, cells, rest };
		return bytes;
	}

	/**
	 * Whether the lines after an open quote are rows of the table rather than lines of a cell: nearly all of them have an
	 * address, and as many cells as the header.
	 */
	#isForgotten(bytes: Buffer): boolean {
		const { rows } = parseBlock({
			bytes,
			delimiter: this.#delimiter,
			line: 1,
			isLast: false,
			limit: triedLines,
		});
		const alike = rows.filter(
			(row) =>
				row.kind === 'record' &&
				row.cells.length === this.#width &&
				row.cells.some((cell) => cell.length < 400 && isEmailAddress(cell.trim())),
		);
		return alike.length > 0 && alike.length >= rows.length * 0.9;
	}

	#endPassed({ line, fault, cells, rest }: Passed): TableRow {
		this.#passed = null;
		this.#line = line + rest.lines;
		const code = fault ?? (rest.isQuoted ? 'unclosed_quote' : 'row_too_long');
		const lost = rest.isQuoted ? `: the ${rest.lines.toLocaleString('en-US')} lines behind it are lost` : '';
		return { kind: 'bad', line, code, error: `${faultMessages[code]}${lost}`, cells };
	}

	#keep(rest: Buffer): void {
		this.#chunks = rest.length === 0 ? [] : [Buffer.from(rest)];
		this.#pending = rest.length;
		this.#wanted =
			this.#passed === null
				? Math.max(blockBytes, Math.min(rest.length * 2, maxRowBytes + blockBytes))
				: blockBytes;
	}

	#check(row: RawRow): TableRow {
		const { line } = row;
		if (row.kind === 'broken') {
			const { fault: code } = row;
			return { kind: 'bad', line, code, error: faultMessages[code], cells: [showLine(row.bytes)] };
		}
		const { isText } = row;
		this.#width ??= row.cells.length - this.#blankColumns;
		const cells = withoutBlanks(row.cells, this.#width, this.#blankColumns);
		const fault = isText
			? findFault(cells, this.#width)
			: { code: 'encoding' as const, error: faultMessages.encoding };
		if (fault === null) return { kind: 'row', line, cells };
		return { kind: 'bad', line, ...fault, cells: this.#joinSurplus(cells, this.#width) };
	}

	/** Joins the cells after the last column: a million of them are a megabyte in the file, and fifty in memory. */
	#joinSurplus(cells: readonly string[], width: number): readonly string[] {
		if (cells.length <= width + 1) return cells;
		return [...cells.slice(0, width), cells.slice(width).join(this.#delimiter)];
	}
}

/** The beginning of a line, without its end. */
function showLine(line: Buffer): string {
	let end = line.length;
	while (end > 0 && (line[end - 1] === 10 || line[end - 1] === 13)) end -= 1;
	const shown = line.subarray(0, Math.min(end, shownCharacters * 4)).toString();
	// As a copy: a substring would keep the whole text in memory.
	return shown.length > shownCharacters ? Buffer.from(shown.slice(0, shownCharacters)).toString() : shown;
}

function withoutBlanks(cells: readonly string[], width: number, blankColumns: number): readonly string[] {
	const surplus = cells.length - width;
	if (surplus <= 0 || surplus > blankColumns) return cells;
	return cells.slice(width).every((cell) => cell.trim() === '') ? cells.slice(0, width) : cells;
}

function findFault(cells: readonly string[], width: number): { code: RowFault; error: string } | null {
	const inCell = findCellFault(cells);
	if (inCell !== null || cells.length === width) return inCell;
	const code = cells.length < width ? 'too_few_cells' : 'too_many_cells';
	const found = cells.length === 1 ? '1 cell' : `${cells.length} cells`;
	return { code, error: `${found} where the header has ${width}` };
}
