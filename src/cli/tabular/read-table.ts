/** Opens a table: looks at its first bytes, then gives its header and its rows as they are asked for. */
import iconv from 'iconv-lite';
import { TableError, type TableRow } from './finding.js';
import { maxColumns, sniffBytes } from './limits.js';
import { readCsv } from './read-csv.js';
import { type Sniffed, sniff } from './sniff.js';
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
	format: 'csv';
	/** What was found or named, for people: `windows-1251`, `;`. */
	encoding: string;
	delimiter: string;
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
		const { encoding = 'auto', delimiter = 'auto' } = options;
		const found = accept(name, sniff(prefix.subarray(0, sniffBytes), { encoding, delimiter, isWhole }));
		const rows = readCsv(toUtf8(joined(prefix.subarray(found.bomBytes), bytes), found.encoding), found);
		const header = await readHeader(name, rows);
		const close = async () => {
			await rows.return();
			await bytes.return();
		};
		return { format: 'csv', encoding: found.encoding, delimiter: found.delimiter, header, rows, close };
	} catch (error) {
		await bytes.return();
		throw error;
	}
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

/** Other encodings are turned into UTF-8; a character cut by two chunks is put together again. */
async function* toUtf8(bytes: AsyncIterable<Uint8Array>, encoding: string): AsyncGenerator<Uint8Array> {
	if (encoding === 'utf8') return yield* bytes;
	const decoder = iconv.getDecoder(encoding, { stripBOM: false });
	for await (const chunk of bytes) yield Buffer.from(decoder.write(Buffer.from(chunk)));
	yield Buffer.from(decoder.end() ?? '');
}

async function readHeader(
	name: string,
	rows: AsyncGenerator<TableRow, void, undefined>,
): Promise<readonly string[]> {
	const first = await rows.next();
	if (first.done) throw new TableError('empty', `${name} is empty: it has no header`);
	const { value: header } = first;
	if (header.kind === 'bad') {
		throw new TableError('bad_header', `${name} has no usable header (line ${header.line}): ${header.error}`);
	}
	if (header.cells.length > maxColumns) {
		const count = header.cells.length.toLocaleString('en-US');
		const message = `${name} has ${count} columns; at most ${maxColumns.toLocaleString('en-US')} are read`;
		throw new TableError('bad_header', message, { hint: 'is it the right delimiter? (--delimiter)' });
	}
	return header.cells;
}
