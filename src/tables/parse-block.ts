/** `parseBlock` splits rows without quotes itself, and passes all other valid rows to csv-parse in one call. */
import { isUtf8 } from 'node:buffer';
import { parse } from 'csv-parse/sync';
import { maxRowBytes } from './finding.js';

export type RawRow =
	/** `isText` is false if the row is not UTF-8. The invalid bytes are then U+FFFD in `cells`. */
	| { kind: 'record'; line: number; cells: readonly string[]; isText: boolean }
	/** `bytes` is the row's first line; only this line is skipped. */
	| { kind: 'broken'; line: number; fault: QuoteFault; bytes: Buffer };

interface Parsed extends Omit<Scanned, 'spans'> {
	rows: RawRow[];
}

export function parseBlock(block: TextBlock): Parsed {
	const { spans, ...rest } = scanRows(block);
	const { bytes, delimiter } = block;
	const isText = isUtf8(bytes.subarray(spans[0]?.begin ?? 0, spans.at(-1)?.end ?? 0));
	const quoted = spans.filter(({ fault, isPlain }) => fault === null && !isPlain);
	const joined = Buffer.concat(quoted.flatMap((span) => withoutGaps(bytes, span)));
	const cells = cellsOf(joined, delimiter);
	if (cells.length !== quoted.length)
		throw new Error(`${quoted.length} rows were parsed as ${cells.length} rows`);
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

function plainCells(bytes: Buffer, { begin, end }: RowSpan, delimiter: string): string[] {
	let last = end;
	while (last > begin && isLineEnd(bytes[last - 1])) last -= 1;
	// Decode only the row, because its cells keep the decoded string in memory.
	return bytes.toString('utf8', begin, last).split(delimiter);
}

function cellsOf(bytes: Buffer, delimiter: string): string[][] {
	if (bytes.length === 0) return [];
	return parse(bytes, {
		delimiter,
		// Accept all three line ends, because files joined from several systems have mixed line ends.
		record_delimiter: ['\r\n', '\n', '\r'],
		relax_column_count: true,
		skip_empty_lines: true,
	});
}

interface TextBlock {
	bytes: Buffer;
	delimiter: string;
	line: number;
	isLast: boolean;
	limit?: number;
}

/** With a `fault`, the span is only the row's first line, and the next line starts a new row. */
interface RowSpan {
	begin: number;
	end: number;
	line: number;
	fault: QuoteFault | null;
	isPlain: boolean;
	/** Start and end of blanks between a delimiter and a quote, which do not belong to the cell. */
	gaps: readonly (readonly [begin: number, end: number])[];
}

export type QuoteFault = 'unclosed_quote' | 'stray_quote';

interface Scanned {
	spans: RowSpan[];
	/** Number of bytes in the spans and blank lines. Pass the remaining bytes again with more data. */
	used: number;
	line: number;
	/** Set if the row at `used` exceeds the maximum length. `fault` is null if its quotes are valid so far. */
	long: { fault: QuoteFault | null } | null;
}

const lf = 10;
const cr = 13;
const quote = 34;

/** The rows do not depend on where blocks end. */
export function scanRows({
	bytes,
	delimiter,
	line,
	isLast,
	limit = Number.POSITIVE_INFINITY,
}: TextBlock): Scanned {
	const mark = Buffer.from(delimiter);
	const spans: RowSpan[] = [];
	const next = { at: 0, line };
	passBlankLines(bytes, next, { mark, isLast });
	while (spans.length < limit && next.at < bytes.length) {
		const { at: begin, line } = next;
		const { end: rowEnd, fault, lines, isPlain, gaps } = scanRow(bytes, { begin, mark, isLast });
		const lineEnd = fault === null ? rowEnd : endOfLine(bytes, begin, isLast);
		const end = fault !== null && lineEnd === -1 && isLast ? bytes.length : lineEnd;
		const isCut = end === -1 || end - begin > maxRowBytes;
		const named = fault && nameFault(fault, bytes.subarray(begin, isCut ? begin + maxRowBytes : end));
		if (isCut) {
			const isLong = bytes.length - begin > maxRowBytes;
			return { spans, used: begin, line, long: isLong ? { fault: named } : null };
		}
		spans.push({ begin, end, line, fault: named, isPlain, gaps });
		next.at = end;
		next.line += fault === null ? lines : 1;
		passBlankLines(bytes, next, { mark, isLast });
	}
	return { spans, used: next.at, line: next.line, long: null };
}

/** Returns the offset after the next line end. -1 without one, or if a CR ends the block: its LF may follow. */
export function endOfLine(bytes: Buffer, start: number, isLast: boolean): number {
	for (let at = start; at < bytes.length; at += 1) {
		if (isLineEnd(bytes[at])) return behindLineEnd(bytes, at, isLast);
	}
	return -1;
}

/** Skips blank lines and byte order marks of joined files, but not a last CR, whose LF may follow. */
function passBlankLines(
	bytes: Buffer,
	next: { at: number; line: number },
	{ mark, isLast }: { mark: Buffer; isLast: boolean },
): void {
	for (;;) {
		while (isAt(bytes, next.at, byteOrderMark)) next.at += byteOrderMark.length;
		const at = afterBlanks(bytes, next.at, mark);
		if (at === bytes.length && isLast) next.at = at;
		if (at === bytes.length || !isLineEnd(bytes[at])) return;
		const end = behindLineEnd(bytes, at, isLast);
		if (end === -1) return;
		next.at = end;
		next.line += 1;
	}
}

/** `opening`: a quote inside an unquoted cell. `closing`: text after a closing quote. `open`: no closing quote. */
type Fault = 'opening' | 'closing' | 'open';

interface ScannedRow {
	/** The offset after the row's line end. -1 with a `fault`, or if the block or the maximum length ends first. */
	end: number;
	fault: Fault | null;
	lines: number;
	isPlain: boolean;
	gaps: [number, number][];
}

function scanRow(
	bytes: Buffer,
	{ begin, mark, isLast }: { begin: number; mark: Buffer; isLast: boolean },
): ScannedRow {
	const stop = Math.min(bytes.length, begin + maxRowBytes);
	const first = mark[0];
	let at = begin;
	let isCellStart = true;
	let isPlain = true;
	let lines = 0;
	let gaps = none;
	while (at < stop) {
		const byte = bytes[at];
		if (isLineEnd(byte))
			return { end: behindLineEnd(bytes, at, isLast), fault: null, lines: lines + 1, isPlain, gaps };
		const start = isCellStart ? afterBlanks(bytes, at, mark) : at;
		if (bytes[start] === quote) {
			isPlain = false;
			const end = isCellStart ? endOfQuotes(bytes, start, { stop, mark, isLast }) : 'opening';
			if (typeof end === 'string') return { end: -1, fault: unlessCut(end), lines, isPlain, gaps };
			lines += countLineEnds(bytes, start, end);
			gaps = withGap(gaps, at, start);
			at = afterBlanks(bytes, end, mark);
			gaps = withGap(gaps, end, at);
			isCellStart = false;
		} else {
			isCellStart = byte === first && isAt(bytes, at, mark);
			at += isCellStart ? mark.length : 1;
		}
	}
	return { end: isLast && stop === bytes.length ? stop : -1, fault: null, lines, isPlain, gaps };
}

function unlessCut(found: Fault | 'cut'): Fault | null {
	return found === 'cut' ? null : found;
}

/** Returns the offset after the closing quote. `cut`: the block or the row's maximum length ends first. */
function endOfQuotes(
	bytes: Buffer,
	start: number,
	{ stop, mark, isLast }: { stop: number; mark: Buffer; isLast: boolean },
): number | 'cut' | 'open' | 'closing' {
	for (let at = start + 1; at < stop; at += 1) {
		if (bytes[at] !== quote) continue;
		if (bytes[at + 1] !== quote) return checkBehind(bytes, at + 1, { mark, isLast });
		at += 1;
	}
	return isLast && stop === bytes.length ? 'open' : 'cut';
}

/** `at` is the offset after a closing quote. Returns `at` if only blanks, or nothing, follow before the cell ends. */
function checkBehind(
	bytes: Buffer,
	at: number,
	{ mark, isLast }: { mark: Buffer; isLast: boolean },
): number | 'cut' | 'closing' {
	const end = afterBlanks(bytes, at, mark);
	if (end === bytes.length) return isLast ? at : 'cut';
	if (isCellEnd(bytes, end, mark)) return at;
	return !isLast && end + mark.length > bytes.length && bytes[end] === mark[0] ? 'cut' : 'closing';
}

const none: [number, number][] = [];

function withGap(gaps: [number, number][], begin: number, end: number): [number, number][] {
	if (begin === end) return gaps;
	if (gaps === none) return [[begin, end]];
	gaps.push([begin, end]);
	return gaps;
}

const byteOrderMark = Buffer.from('\ufeff');

function afterBlanks(bytes: Buffer, start: number, mark: Buffer): number {
	let at = start;
	while (isBlank(bytes[at], mark)) at += 1;
	return at;
}

function isBlank(byte: number | undefined, mark: Buffer): boolean {
	return (byte === 32 || byte === 9) && byte !== mark[0];
}

function behindLineEnd(bytes: Buffer, at: number, isLast: boolean): number {
	if (bytes[at] === lf) return at + 1;
	if (at + 1 === bytes.length && !isLast) return -1;
	return at + (bytes[at + 1] === lf ? 2 : 1);
}

function countLineEnds(bytes: Buffer, start: number, end: number): number {
	let lines = 0;
	for (let at = start; at < end; at += 1) {
		if (bytes[at] === lf || (bytes[at] === cr && bytes[at + 1] !== lf)) lines += 1;
	}
	return lines;
}

function isCellEnd(bytes: Buffer, at: number, mark: Buffer): boolean {
	return at === bytes.length || isLineEnd(bytes[at]) || isAt(bytes, at, mark);
}

function isAt(bytes: Buffer, at: number, mark: Buffer): boolean {
	for (let index = 0; index < mark.length; index += 1) if (bytes[at + index] !== mark[index]) return false;
	return true;
}

function isLineEnd(byte: number | undefined): boolean {
	return byte === lf || byte === cr;
}

/** If the first line has an odd number of quotes, its last cell is unclosed: the next quote belongs to a later row. */
function nameFault(fault: Fault, bytes: Buffer): QuoteFault {
	if (fault !== 'closing') return fault === 'open' ? 'unclosed_quote' : 'stray_quote';
	const end = endOfLine(bytes, 0, true);
	let quotes = 0;
	for (let at = 0; at < (end === -1 ? bytes.length : end); at += 1) if (bytes[at] === quote) quotes += 1;
	return quotes % 2 === 1 ? 'unclosed_quote' : 'stray_quote';
}

export const blockBytes = 64 * 1024;

/** Each block starts with the rest that `read` returned before. */
export async function* inBlocks<Item>(
	source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
	read: (bytes: Buffer, isLast: boolean) => Generator<Item, Buffer>,
): AsyncGenerator<Item, void, undefined> {
	let chunks: Uint8Array[] = [];
	let pending = 0;
	let wanted = blockBytes;
	for await (const chunk of source) {
		chunks.push(chunk);
		pending += chunk.length;
		if (pending < wanted) continue;
		const rest = yield* read(Buffer.concat(chunks), false);
		chunks = rest.length === 0 ? [] : [Buffer.from(rest)];
		pending = rest.length;
		// Double the size if a block has no whole row, so that a long row takes linear time.
		wanted = Math.max(blockBytes, Math.min(pending * 2, maxRowBytes + blockBytes));
	}
	yield* read(Buffer.concat(chunks), true);
}
