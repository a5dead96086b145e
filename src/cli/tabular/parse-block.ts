/**
 * One block of UTF-8 bytes into records, with the line each begins on and the bytes used up. Pure and synchronous: the
 * reader decides what to do with the rest, so a broken record costs that record and not the parser's state.
 */
import { isUtf8 } from 'node:buffer';
import { CsvError, type Info, parse } from 'csv-parse/sync';
import { maxRowBytes } from './limits.js';

export interface RawRecord {
	/** Line it begins on, counted from the `line` given. */
	line: number;
	cells: readonly string[];
	/** False: some bytes of it are no UTF-8 (read as U+FFFD). */
	isText: boolean;
}

export interface Block {
	bytes: Buffer;
	delimiter: string;
	/** The line the block begins on. */
	line: number;
	/** Nothing follows: the last record needs no line end. */
	isLast: boolean;
	/** At most so many records (all). */
	limit?: number;
}

export interface Parsed {
	records: RawRecord[];
	/** Bytes of whole records; what follows is to be given again with more behind it. */
	used: number;
	/** The line after what was used. */
	line: number;
	/** Why the record after `used` cannot be read; null: it is merely cut by the block's end. */
	fault: 'unclosed_quote' | 'stray_quote' | 'row_too_long' | null;
}

const lf = 10;
const cr = 13;
const quote = 34;

/**
 * Blank lines are no records. After a `fault` the caller passes over the broken one; what follows `used` comes again.
 */
export function parseBlock(block: Block): Parsed {
	const { found, error } = collectFast(block) ?? collect(block);
	if (!block.isLast && error === null) dropCutRecord(found, block);
	// Only what is used is looked at: after a fault the same bytes come again, and must not cost a square.
	const isText = isUtf8(block.bytes.subarray(0, found.at(-1)?.end ?? 0));
	const records: RawRecord[] = [];
	const lines = new LineCounter(block);
	let start = 0;
	for (const { cells, end } of found) {
		const begin = skipLineEnds(block.bytes, start, end);
		// Also where it came whole: what a row is must not hang on where the blocks were cut.
		if (end - begin > maxRowBytes)
			return { records, used: start, line: lines.line, fault: tooLong(block.bytes, begin) };
		lines.advance(begin);
		records.push({ line: lines.line, cells, isText: isText || isUtf8(block.bytes.subarray(begin, end)) });
		lines.advance(end);
		start = end;
	}
	if (block.isLast && error === null && block.limit === undefined) start = block.bytes.length;
	return {
		records,
		used: start,
		line: lines.line,
		fault: faultOf(error, block, start),
	};
}

/** Offset of the first byte that is no line end. */
export function skipLineEnds(bytes: Buffer, start: number, end: number): number {
	let at = start;
	while (at < end && (bytes[at] === lf || bytes[at] === cr)) at += 1;
	return at;
}

/** Offset behind the next line end at or after `start`; -1 when there is none, or it may go on after the block. */
export function endOfLine(bytes: Buffer, start: number, isLast: boolean): number {
	const feed = bytes.indexOf(lf, start);
	const back = (feed === -1 ? bytes : bytes.subarray(0, feed)).indexOf(cr, start);
	if (back === -1) return feed === -1 ? -1 : feed + 1;
	if (back === bytes.length - 1 && !isLast) return -1;
	return back + (bytes[back + 1] === lf ? 2 : 1);
}

interface Found {
	cells: readonly string[];
	end: number;
}

interface Collected {
	found: Found[];
	/** What ended it before its end. */
	error: CsvError | null;
}

/**
 * The block as one call, without csv-parse telling each record's place, which doubles its time. The places are found
 * by the parity of quotes, which is exact where csv-parse has no complaint; null where it has, or lines are odd.
 */
function collectFast(block: Block): Collected | null {
	if (block.limit !== undefined) return null;
	const ends = recordEnds(block);
	if (ends === null || ends.length === 0) return null;
	try {
		const records = parse(block.bytes.subarray(0, ends.at(-1)), parseOptions(block));
		if (records.length !== ends.length) return null;
		return { found: records.map((cells, index) => ({ cells, end: ends[index] ?? 0 })), error: null };
	} catch (error) {
		if (error instanceof CsvError) return null;
		throw error;
	}
}

/** Offset behind each line end outside quotes; null where a line is blank or ends in CR alone. */
function recordEnds({ bytes, isLast }: Block): number[] | null {
	const ends: number[] = [];
	let start = 0;
	let isQuoted = false;
	for (let at = 0; at < bytes.length; at += 1) {
		const byte = bytes[at];
		if (byte === quote) isQuoted = !isQuoted;
		if (isQuoted || (byte !== lf && byte !== cr)) continue;
		if (at === start || (byte === cr && at + 1 < bytes.length && bytes[at + 1] !== lf)) return null;
		if (byte === cr) continue;
		start = at + 1;
		ends.push(start);
	}
	if (!isLast || start === bytes.length) return ends;
	return isQuoted || bytes.at(-1) === cr ? null : [...ends, bytes.length];
}

/** csv-parse's records with the offset each ends at, and the error that ended them, if any. */
function collect(block: Block): Collected {
	const found: Found[] = [];
	const onRecord = (cells: string[], { bytes }: Info) => {
		found.push({ cells, end: bytes });
		return null;
	};
	const to = block.limit === undefined ? {} : { to: block.limit };
	try {
		parse(block.bytes, { ...parseOptions(block), ...to, on_record: onRecord });
		return { found, error: null };
	} catch (error) {
		if (error instanceof CsvError) return { found, error };
		throw error;
	}
}

function parseOptions({ delimiter }: Block) {
	return {
		delimiter,
		// All three at once: files that were joined from several systems have mixed line ends.
		record_delimiter: ['\r\n', '\n', '\r'],
		relax_column_count: true,
		skip_empty_lines: true,
		max_record_size: maxRowBytes * 2,
	};
}

/** The last record may go on in the next block unless a line feed ends it (after CR an LF may follow). */
function dropCutRecord(found: Found[], { bytes }: Block): void {
	if (found.at(-1)?.end === bytes.length && bytes[bytes.length - 1] !== lf) found.pop();
}

/**
 * An odd number of quotes on the record's first line: the quote was never closed, and what looked like its end is the
 * opening quote of a later row.
 */
function faultOf(error: CsvError | null, { bytes, isLast }: Block, start: number): Parsed['fault'] {
	const begin = skipLineEnds(bytes, start, bytes.length);
	if (error === null || error.code === 'CSV_QUOTE_NOT_CLOSED') {
		if (isLast && error !== null) return 'unclosed_quote';
		return bytes.length - begin > maxRowBytes ? tooLong(bytes, begin) : null;
	}
	if (error.code === 'CSV_MAX_RECORD_SIZE') return tooLong(bytes, begin);
	if (error.code !== 'CSV_INVALID_CLOSING_QUOTE') return 'stray_quote';
	const end = endOfLine(bytes, begin, isLast);
	let quotes = 0;
	for (const byte of bytes.subarray(begin, end === -1 ? bytes.length : end)) if (byte === quote) quotes += 1;
	return quotes % 2 === 1 ? 'unclosed_quote' : 'stray_quote';
}

/** Over many lines it is a quote that was forgotten, on one line a long row. */
function tooLong(bytes: Buffer, begin: number): 'unclosed_quote' | 'row_too_long' {
	const row = bytes.subarray(begin, begin + maxRowBytes);
	return row.includes(lf) || row.includes(cr) ? 'unclosed_quote' : 'row_too_long';
}

/** Counts line ends once, forward: LF, CR LF as one, CR alone. */
class LineCounter {
	line: number;
	readonly #bytes: Buffer;
	#at = 0;

	constructor({ bytes, line }: Block) {
		this.line = line;
		this.#bytes = bytes;
	}

	advance(end: number): void {
		const bytes = this.#bytes;
		for (let at = this.#at; at < end; at += 1) {
			const byte = bytes[at];
			if (byte === lf || (byte === cr && bytes[at + 1] !== lf)) this.line += 1;
		}
		this.#at = end;
	}
}
