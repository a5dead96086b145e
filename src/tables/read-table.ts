import { isAscii } from 'node:buffer';
import iconv from 'iconv-lite';
import { byMark, detectUnicode } from './encoding.js';
import { maxColumns, sniffBytes, TableError, type TableRow } from './finding.js';
import { evidenceBytes, linesBeyondAscii } from './guess-encoding.js';
import { type CsvOptions, readCsv } from './read-csv.js';
import { readNdjson } from './read-ndjson.js';
import { hintOfEmpty, sniff } from './sniff.js';
import { isRepeatable, readBytes, sourceName, type TableSource } from './source.js';

export interface TableOptions {
	encoding?: string;
	delimiter?: string;
	/** Aborts reading with the signal's reason, even during a read that hangs. */
	signal?: AbortSignal;
}

export interface Table {
	format: 'csv' | 'ndjson';
	encoding: string;
	delimiter: string;
	isGuessed: boolean;
	isMarked: boolean;
	/** For NDJSON, the keys of the objects, with `meta.x` for keys of `meta`. */
	header: readonly string[];
	/** Iterable once. */
	rows: AsyncIterable<TableRow>;
	/** The first rows, at most 1,000 or 256 KiB. `rows` yields them too. */
	peek(): Promise<Peeked>;
	close(): Promise<void>;
}

interface Peeked {
	rows: readonly TableRow[];
	isWhole: boolean;
}

/** Throws `TableError` for a source without a table. Keeps at most the prefix and a block of rows in memory. */
export async function openTable(source: TableSource, options: TableOptions = {}): Promise<Table> {
	const name = sourceName(source);
	const bytes = readBytes(source, options.signal);
	try {
		const { prefix, isWhole } = await readPrefix(bytes);
		const { encoding: wanted = 'auto', delimiter: separator = 'auto' } = options;
		const found = sniff(prefix.subarray(0, sniffBytes), {
			...{ encoding: wanted, delimiter: separator, isWhole },
			format: /\.(?:ndjson|jsonl)$/i.test(name) ? 'ndjson' : 'auto',
			evidence: await evidenceOf(source, prefix, options),
		});
		if (found.kind === 'refused') throw new TableError(found.code, `${name} ${found.what}`, found.more);
		const open = (rest: AsyncIterable<Uint8Array>) => {
			const text = toUtf8(joined(prefix.subarray(found.bomBytes), rest), found.encoding);
			return found.format === 'csv'
				? openCsv(name, without(text, found.hintBytes), found)
				: openNdjson(name, text);
		};
		const { header, rows } = await open(bytes);
		const close = async () => {
			await rows.return();
			await bytes.return();
		};
		const { format, encoding, delimiter, isGuessed } = found;
		const isMarked = found.bomBytes > 0;
		const first = () => peek(() => open(nothing()), isWhole);
		return {
			...{ format, encoding, delimiter, isGuessed, isMarked, header: accepted(name, header) },
			...{ rows, peek: first, close },
		};
	} catch (error) {
		await bytes.return();
		throw error;
	}
}

/** Non-ASCII lines may come late, so search the whole source for them if it can be read twice. */
async function evidenceOf(
	source: TableSource,
	prefix: Buffer,
	{ encoding = 'auto', signal }: TableOptions,
): Promise<Buffer | null> {
	const marked = byMark(prefix);
	const isSilent = isAscii(prefix.subarray(marked?.encoding === 'utf-8' ? marked.bomBytes : 0));
	const isFound =
		(encoding !== 'auto' && marked === null) || (!isSilent && detectUnicode(prefix, false) !== null);
	if (isFound || prefix.length < sniffBytes || !(await isRepeatable(source))) return null;
	const evidence = await readBeyondAscii(source, signal);
	return byMark(evidence)?.encoding === 'utf-8' ? linesBeyondAscii(evidence.subarray(3)) : evidence;
}

async function readBeyondAscii(source: TableSource, signal: AbortSignal | undefined): Promise<Buffer> {
	const found: Buffer[] = [];
	let rest = Buffer.alloc(0);
	let length = 0;
	for await (const chunk of readBytes(source, signal)) {
		if (isAscii(chunk)) {
			found.push(linesBeyondAscii(rest));
			rest = Buffer.alloc(0);
			continue;
		}
		const bytes = Buffer.concat([rest, chunk]);
		const end = Math.max(bytes.lastIndexOf(10), bytes.lastIndexOf(13)) + 1;
		const lines = linesBeyondAscii(bytes.subarray(0, end === 0 ? bytes.length : end));
		rest = end === 0 ? Buffer.alloc(0) : Buffer.from(bytes.subarray(end));
		found.push(lines);
		length += lines.length;
		if (length >= evidenceBytes) return Buffer.concat(found);
	}
	return Buffer.concat([...found, linesBeyondAscii(rest)]);
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

const peekedRows = 1_000;

/** Reads the first rows from the prefix alone, because a pipe may send no more bytes for a long time. */
async function peek(open: () => Promise<Opened>, isWhole: boolean): Promise<Peeked> {
	const rows: TableRow[] = [];
	const found = await open().catch(() => null);
	for (let next = await found?.rows.next(); next && !next.done; next = await found?.rows.next()) {
		rows.push(next.value);
		if (rows.length > peekedRows) break;
	}
	await found?.rows.return();
	const isCut = !isWhole || rows.length > peekedRows;
	// The last row may be cut off.
	return { rows: isCut ? rows.slice(0, -1) : rows, isWhole: !isCut };
}

async function* joined(prefix: Buffer, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
	yield prefix;
	yield* rest;
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** Turns an invalid character into an invalid byte, so that its row is rejected instead of imported with U+FFFD. */
async function* toUtf8(bytes: AsyncIterable<Uint8Array>, encoding: string): AsyncGenerator<Uint8Array> {
	if (encoding === 'utf-8') return yield* bytes;
	const decoder = iconv.getDecoder(encoding, { stripBOM: false });
	let length = 0;
	for await (const chunk of bytes) {
		length += chunk.length;
		yield markBroken(decoder.write(Buffer.from(chunk)));
	}
	yield markBroken(decoder.end() ?? '');
	// The decoder drops an odd last byte, so yield an invalid byte in its place.
	if (encoding.startsWith('utf-16') && length % 2 === 1) yield broken;
}

function markBroken(text: string): Buffer {
	const bytes = Buffer.from(text);
	if (!bytes.includes(replacementMark)) return bytes;
	return Buffer.from(
		bytes.toString('latin1').replaceAll(replacementMark.toString('latin1'), broken.toString('latin1')),
		'latin1',
	);
}

const broken = Buffer.from([0xff]);

const replacementMark = Buffer.from([0xef, 0xbf, 0xbd]);

/** Omits the `sep=` hint but not its line end, so that line numbers match the file. */
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

async function openCsv(name: string, text: AsyncIterable<Uint8Array>, options: CsvOptions): Promise<Opened> {
	const rows = readCsv(text, options);
	const first = await rows.next();
	if (first.done) throw empty(name);
	if (first.value.kind === 'bad') throw noHeader(name, first.value);
	return { header: first.value.cells, rows };
}

async function openNdjson(name: string, text: AsyncIterable<Uint8Array>): Promise<Opened> {
	const { header, fault, isEmpty, rows } = await readNdjson(text);
	if (fault !== null) throw noHeader(name, fault);
	// Accept an empty NDJSON file, like a CSV file that has only a header.
	if (isEmpty) return { header: ['email'], rows };
	if (header.length === 0) throw empty(name);
	return { header, rows };
}

function empty(name: string): TableError {
	return new TableError('empty', `${name} is empty: it has no header`, { hint: hintOfEmpty });
}

function noHeader(name: string, { line, error }: { line: number; error: string }): TableError {
	return new TableError('bad_header', `${name} has no usable header (line ${line}): ${error}`);
}

function accepted(name: string, header: readonly string[]): readonly string[] {
	if (header.length <= maxColumns) return header;
	const count = header.length.toLocaleString('en-US');
	const message = `${name} has ${count} columns; at most ${maxColumns.toLocaleString('en-US')} are read`;
	throw new TableError('bad_header', message, { hint: 'try another delimiter with --delimiter' });
}
