/** What the first bytes of a source are: text with an encoding and a delimiter, or something else by name. Pure. */
import { isUtf8 } from 'node:buffer';
import iconv from 'iconv-lite';
import { byMark, cutPartialCharacter, detectEncoding, type EncodingFound } from './encoding.js';
import type { TableFault } from './finding.js';
import { parseBlock } from './parse-block.js';
import { recognizeBinary } from './signatures.js';

export interface SniffOptions {
	/** A name iconv-lite knows, or `auto`. */
	encoding: string;
	/** One character, `tab`, or `auto`; a named one says that it is CSV. */
	delimiter: string;
	/** `ndjson`: by its name it is; `auto`: an object at the beginning decides. */
	format: 'auto' | 'ndjson';
	/** The prefix is the whole source. */
	isWhole: boolean;
}

/** `hintBytes`: so many of its UTF-8 text, at the beginning, are a word to spreadsheets and no row. */
export type Sniffed =
	| ({ kind: 'text'; format: 'csv' | 'ndjson'; delimiter: string; hintBytes: number } & EncodingFound)
	/** `what` goes behind the file's name: "people.xlsx is a zip archive". */
	| { kind: 'refused'; code: TableFault; what: string };

/** Delimiters that are found by themselves, most likely first. */
export const delimiters = [',', ';', '\t', '|'] as const;

/** `prefix` is at most `sniffBytes` long; an empty one is refused as `empty`. */
export function sniff(prefix: Buffer, options: SniffOptions): Sniffed {
	if (prefix.length === 0 && options.format === 'ndjson') return noLines;
	if (prefix.length === 0) return refuse('empty', 'is empty: it has no header');
	const what = recognizeBinary(prefix);
	if (what !== null) return refuse('binary', `is ${what}`);
	const found = chooseEncoding(prefix, options);
	if ('code' in found) return refuse(found.code, found.what);
	const text = decodePrefix(prefix, found);
	if (looksBinary(text)) return refuse('binary', 'is a binary file, no text');
	const json = options.delimiter === 'auto' ? recognizeJson(text, options.format) : 'none';
	if (json === 'array') return refuse('json', arrayOfObjects);
	if (json === 'lines') return { ...noLines, ...found };
	const hint = readHint(text);
	const delimiter = chooseDelimiter(hint, text, options);
	if (delimiter === null) {
		return refuse('bad_delimiter', `cannot be read with the delimiter ${JSON.stringify(options.delimiter)}`);
	}
	return { kind: 'text', ...found, format: 'csv', delimiter, hintBytes: hint?.bytes ?? 0 };
}

/** No object in it is what an export of an empty list writes. */
const noLines = {
	kind: 'text',
	format: 'ndjson',
	delimiter: '',
	hintBytes: 0,
	encoding: 'utf-8',
	bomBytes: 0,
} as const;

/**
 * A first line `sep=;` is a word to spreadsheets and no header (Microsoft Support, "Import or export text files"); one that
 * was saved again may be quoted or filled up with delimiters. Null: there is none.
 */
function readHint(text: string): { delimiter: string; bytes: number } | null {
	const found = /^"?sep=([^"\r\n\w])"?\1*(?=[\r\n]|$)/i.exec(text);
	return found === null ? null : { delimiter: found[1] ?? '', bytes: Buffer.byteLength(found[0]) };
}

const arrayOfObjects = `is one JSON array: an object a line is read, as "jq -c '.[]' FILE" or "-o ndjson" writes it`;

/**
 * A header may begin with a bracket or a brace, but hardly with a brace and a quote or a bracket and a brace. An array is read when it is
 * written an object a line, as an export is.
 */
function recognizeJson(text: string, format: SniffOptions['format']): 'lines' | 'array' | 'none' {
	if (/^\s*\[\s*\n\s*\{.*\}[ \t]*,?[ \t]*\r?\n/.test(text)) return 'lines';
	if (/^\s*\[\s*\]\s*$/.test(text)) return 'lines';
	if (/^\s*\[\s*\{\s*["}]/.test(text)) return 'array';
	return format === 'ndjson' || /^\s*\{\s*["}]/.test(text) ? 'lines' : 'none';
}

/**
 * The delimiter that gives the first 20 records the same width of two and more cells; the wider one where two do,
 * then the first of `delimiters`. A comma for a file of one column.
 */
export function detectDelimiter(text: string, isWhole: boolean): string {
	const bytes = Buffer.from(text);
	let best = { delimiter: ',', agreement: 0, width: 1 };
	for (const delimiter of delimiters) {
		const parsed = parseBlock({ bytes, delimiter, line: 1, isLast: isWhole, limit: 20 });
		const width = parsed.records[0]?.cells.length ?? firstLineWidth(text, delimiter);
		const same = parsed.records.filter(({ cells }) => cells.length === width).length;
		const agreement = parsed.records.length === 0 ? 0 : same / parsed.records.length;
		const isBetter =
			agreement > best.agreement || (agreement === best.agreement && width > best.width) || best.width === 1;
		if (width > 1 && isBetter) best = { delimiter, agreement, width };
	}
	return best.delimiter;
}

/** When not even the header could be read (a quote that is never closed). */
function firstLineWidth(text: string, delimiter: string): number {
	return (/^[^\r\n]*/.exec(text)?.[0] ?? '').split(delimiter).length;
}

function refuse(code: TableFault, what: string): Sniffed {
	return { kind: 'refused', code, what };
}

function chooseEncoding(
	prefix: Buffer,
	options: SniffOptions,
): EncodingFound | { code: TableFault; what: string } {
	if (options.encoding === 'auto') return detectEncoding(prefix, options.isWhole);
	const encoding = canonical(options.encoding);
	if (!iconv.encodingExists(encoding)) {
		const what = `cannot be read: unknown encoding ${options.encoding} (utf-8, utf-16, windows-1251, windows-1252, …)`;
		return { code: 'unknown_encoding', what };
	}
	const marked = byMark(prefix);
	const seems = marked ?? detectEncoding(prefix, options.isWhole);
	if (contradicts(encoding, seems.encoding, marked !== null)) {
		return { code: 'wrong_encoding', what: `is not ${options.encoding}: it seems to be ${seems.encoding}` };
	}
	if (encoding === 'utf-16')
		return seems.encoding.startsWith('utf-16') ? seems : { encoding: 'utf-16le', bomBytes: 0 };
	return { encoding, bomBytes: marked?.bomBytes ?? 0 };
}

function canonical(name: string): string {
	const plain = name.toLowerCase().replace(/[\s_-]/g, '');
	const known: Readonly<Record<string, string>> = {
		utf8: 'utf-8',
		utf16: 'utf-16',
		utf16le: 'utf-16le',
		utf16be: 'utf-16be',
		cp1251: 'windows-1251',
		cp1252: 'windows-1252',
		windows1251: 'windows-1251',
		windows1252: 'windows-1252',
	};
	return Object.hasOwn(known, plain) ? (known[plain] ?? name) : name;
}

/** A mark, UTF-16's zero bytes and invalid UTF-8 are evidence; which code page it is, is not. */
function contradicts(named: string, seems: string, isMarked: boolean): boolean {
	const isWide = (encoding: string) => encoding.startsWith('utf-16');
	if (isWide(named) || isWide(seems)) {
		return named === 'utf-16' ? !isWide(seems) : named !== seems;
	}
	return isMarked ? named !== seems : named === 'utf-8' && seems !== 'utf-8';
}

function decodePrefix(prefix: Buffer, { encoding, bomBytes }: EncodingFound): string {
	const bytes = prefix.subarray(bomBytes);
	if (encoding === 'utf-8') return (isUtf8(bytes) ? bytes : cutPartialCharacter(bytes)).toString();
	return iconv.decode(bytes, encoding, { stripBOM: false });
}

/** A stray NUL is one row's fault; a tenth of control characters, or a NUL in the header, is no table. */
function looksBinary(text: string): boolean {
	const controls = text.match(/[\x00-\x08\x0e-\x1a\x1c-\x1f]/g)?.length ?? 0;
	return (controls > 8 && controls * 10 > text.length) || /^[^\r\n]*\x00/.test(text.slice(0, 10_000));
}

function chooseDelimiter(
	hint: { delimiter: string } | null,
	text: string,
	{ delimiter, isWhole }: SniffOptions,
): string | null {
	if (delimiter === 'auto') return hint?.delimiter ?? detectDelimiter(text, isWhole);
	if (delimiter === 'tab' || delimiter === '\\t') return '\t';
	return /^[^"\r\n\0]$/u.test(delimiter) ? delimiter : null;
}
