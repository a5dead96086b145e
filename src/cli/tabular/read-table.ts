/** Opens a table: looks at its first bytes, then gives its header and its rows as they are asked for. */
import iconv from 'iconv-lite';
import { TableError, type TableRow } from './finding.js';
import { maxColumns, sniffBytes } from './limits.js';
import { readCsv } from './read-csv.js';
import { readNdjson } from './read-ndjson.js';
import { type Sniffed, type SniffOptions, sniff } from './sniff.js';
import { readBytes, sourceName, type TableSource } from './source.js';

export interface TableOptions {
	/** `auto` (default), or a name iconv-lite knows. */
	encoding?: string;
	/** `auto` (default), `tab`, or one character. */
	delimiter?: string;
	/** Ends reading with the signal's reason, also while a read hangs. */
	signal?: AbortSignal;
}

export interface Table {
	format: 'csv' | 'ndjson';
	/** What was found or named, for people: `windows-1251`, `;` (empty for NDJSON). */
	encoding: string;
	delimiter: string;
	/** It begins with a byte order mark. */
	isMarked: boolean;
	/** The columns' names; those of NDJSON are the keys of the objects, `meta.x` for what lies in `meta`. */
	header: readonly string[];
	/** Once only. Rows that cannot be used are among them as `bad`, in the order of the file. */
	rows: AsyncIterable<TableRow>;
	/** Lets go of the source when the rows are not read to their end. */
	close(): Promise<void>;
}

/** Throws `TableError` for whatever is no table; holds at most the sniffed prefix and one row in memory. */
export async function openTable(source: TableSource, options: TableOptions = {}): Promise<Table> {
	const name = sourceName(source);
	const bytes = readBytes(source, options.signal);
	try {
		const { prefix, isWhole } = await readPrefix(bytes);
		const found = accept(name, sniff(prefix.subarray(0, sniffBytes), sniffOptions(name, options, isWhole)));
		const text = toUtf8(joined(prefix.subarray(found.bomBytes), bytes), found.encoding);
		const { header, rows } = await (found.format === 'csv'
			? openCsv(name, without(text, found.hintBytes), found.delimiter)
			: openNdjson(name, text));
		const close = async () => {
			await rows.return();
			await bytes.return();
		};
		const { format, encoding, delimiter } = found;
		const isMarked = found.bomBytes > 0;
		return { format, encoding, delimiter, isMarked, header: accepted(name, header), rows, close };
	} catch (error) {
		await bytes.return();
		throw error;
	}
}

/** A name may say that it is NDJSON; what else it is, is looked at. */
function sniffOptions(name: string, options: TableOptions, isWhole: boolean): SniffOptions {
	const { encoding = 'auto', delimiter = 'auto' } = options;
	return { encoding, delimiter, format: /\.(?:ndjson|jsonl)$/i.test(name) ? 'ndjson' : 'auto', isWhole };
}

function accept(name: string, sniffed: Sniffed): Extract<Sniffed, { kind: 'text' }> {
	if (sniffed.kind === 'refused') throw new TableError(sniffed.code, `${name} ${sniffed.what}`);
	return sniffed;
}

async function readPrefix(bytes: AsyncGenerator<Uint8Array>): Promise<{ prefix: Buffer; isWhole: boolean }> {
	const chunks: Uint8Array[] = [];
	let length = 0;
	while (length < sniffBytes) {
		const next = await bytes.next();
		if (next.done) return { prefix: Buffer.concat(chunks), isWhole: true };
		chunks.push(next.value);
		length += next.value.length;
	}
	return { prefix: Buffer.concat(chunks), isWhole: length === 0 };
}

async function* joined(prefix: Buffer, rest: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
	yield prefix;
	yield* rest;
}

/**
 * Other encodings are turned into UTF-8; a character cut by two chunks is put together again. What is no character
 * there is passed on as a byte that is none here, so that its row is refused and not imported with a replacement mark.
 */
async function* toUtf8(bytes: AsyncIterable<Uint8Array>, encoding: string): AsyncGenerator<Uint8Array> {
	if (encoding === 'utf-8') return yield* bytes;
	const decoder = iconv.getDecoder(encoding, { stripBOM: false });
	for await (const chunk of bytes) yield markBroken(decoder.write(Buffer.from(chunk)));
	yield markBroken(decoder.end() ?? '');
}

function markBroken(text: string): Buffer {
	const bytes = Buffer.from(text);
	if (!bytes.includes(replacementMark)) return bytes;
	return Buffer.from(
		bytes.toString('latin1').replaceAll(replacementMark.toString('latin1'), '\xff'),
		'latin1',
	);
}

/** U+FFFD. */
const replacementMark = Buffer.from([0xef, 0xbf, 0xbd]);

/** The text behind its first bytes; the line end stays, so that lines are counted as they are in the file. */
async function* without(text: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
	let left = bytes;
	for await (const chunk of text) {
		const cut = Math.min(left, chunk.length);
		left -= cut;
		yield cut === 0 ? chunk : chunk.subarray(cut);
	}
}

interface Opened {
	header: readonly string[];
	rows: AsyncGenerator<TableRow, void, undefined>;
}

async function openCsv(name: string, text: AsyncIterable<Uint8Array>, delimiter: string): Promise<Opened> {
	const rows = readCsv(text, { delimiter });
	const first = await rows.next();
	if (first.done) throw empty(name);
	if (first.value.kind === 'bad') throw noHeader(name, first.value);
	return { header: first.value.cells, rows };
}

async function openNdjson(name: string, text: AsyncIterable<Uint8Array>): Promise<Opened> {
	const { header, fault, isEmpty, rows } = await readNdjson(text);
	if (fault !== null) throw noHeader(name, fault);
	// No object names no column; an empty list is no mistake, as a header alone is none.
	if (isEmpty) return { header: ['email'], rows };
	if (header.length === 0) throw empty(name);
	return { header, rows };
}

function empty(name: string): TableError {
	return new TableError('empty', `${name} is empty: it has no header`);
}

function noHeader(name: string, { line, error }: { line: number; error: string }): TableError {
	return new TableError('bad_header', `${name} has no usable header (line ${line}): ${error}`);
}

function accepted(name: string, header: readonly string[]): readonly string[] {
	if (header.length <= maxColumns) return header;
	const count = header.length.toLocaleString('en-US');
	const message = `${name} has ${count} columns; at most ${maxColumns.toLocaleString('en-US')} are read`;
	throw new TableError('bad_header', message, { hint: 'is it the right delimiter? (--delimiter)' });
}
