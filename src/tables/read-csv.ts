import { faultMessages, findCellFault, maxRowBytes, type RowFault, type TableRow } from './finding.js';
import { endOfLine, inBlocks, parseBlock, type QuoteFault, type RawRow } from './parse-block.js';

export interface CsvOptions {
	delimiter: string;
	/** Number of blank columns at the end of the header. They are ignored, and rows may have blank cells there. */
	blankColumns?: number;
}

/** `source` is UTF-8 without a byte order mark, in pieces of any size. All rows must have the width of the first. */
export function readCsv(
	source: AsyncIterable<Uint8Array>,
	options: CsvOptions,
): AsyncGenerator<TableRow, void, undefined> {
	const reader = new CsvReader(options);
	return inBlocks(source, (bytes, isLast) => reader.parse(bytes, isLast));
}

/** Rows to parse at once. Cells of more rows would outgrow V8's young generation, so V8 would copy them. */
const rowsAtOnce = 200;
const shownCharacters = 1000;

class CsvReader {
	readonly #delimiter: string;
	readonly #blankColumns: number;
	#width: number | null = null;
	#line = 1;
	#isSkipping = false;

	constructor({ delimiter, blankColumns = 0 }: CsvOptions) {
		this.#delimiter = delimiter;
		this.#blankColumns = blankColumns;
	}

	*parse(block: Buffer, isLast: boolean): Generator<TableRow, Buffer> {
		let bytes = block;
		while (bytes.length > 0) {
			if (this.#isSkipping) {
				const end = endOfLine(bytes, 0, isLast);
				// Keep a last CR, because its LF may come with the next block.
				const rest = bytes.length - (bytes.at(-1) === 13 && !isLast ? 1 : 0);
				bytes = bytes.subarray(end === -1 ? rest : end);
				if (end === -1) break;
				this.#isSkipping = false;
				this.#line += 1;
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
		return bytes;
	}

	/** Rejects only the first line of a row that is too long, even if a quote is open. The next line starts a new row. */
	*#giveUp(bytes: Buffer, fault: QuoteFault | null): Generator<TableRow, Buffer> {
		const end = endOfLine(bytes.subarray(0, maxRowBytes), 0, false);
		const cells = [showLine(end === -1 ? bytes : bytes.subarray(0, end))];
		const code = end === -1 ? (fault ?? 'row_too_long') : 'unclosed_quote';
		yield { kind: 'bad', line: this.#line, code, error: faultMessages[code], cells };
		this.#isSkipping = end === -1;
		this.#line += end === -1 ? 0 : 1;
		return end === -1 ? bytes : bytes.subarray(end);
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

	/** Joins surplus cells, because a million of them take 1 MB in the file but 50 MB in memory. */
	#joinSurplus(cells: readonly string[], width: number): readonly string[] {
		if (cells.length <= width + 1) return cells;
		return [...cells.slice(0, width), cells.slice(width).join(this.#delimiter)];
	}
}

function showLine(line: Buffer): string {
	let end = line.length;
	while (end > 0 && (line[end - 1] === 10 || line[end - 1] === 13)) end -= 1;
	const shown = line.subarray(0, Math.min(end, shownCharacters * 4)).toString();
	// Copy the text, because a substring would keep the whole text in memory.
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
