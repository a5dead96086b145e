import { isAscii, isUtf8 } from 'node:buffer';
import iconv from 'iconv-lite';
import { byMark, cutPartialCharacter, detectUnicode, type EncodingFound } from './encoding.js';
import type { TableErrorOptions, TableFault } from './finding.js';
import { type EncodingGuess, guessEncoding, linesBeyondAscii } from './guess-encoding.js';
import { parseBlock } from './parse-block.js';

interface SniffOptions {
	encoding: string;
	delimiter: string;
	/** `ndjson` if the file's name says so. With `auto`, `sniff` recognizes NDJSON by its first object. */
	format: 'auto' | 'ndjson';
	isWhole: boolean;
	evidence?: Buffer | null;
}

type Sniffed =
	| ({
			kind: 'text';
			format: 'csv' | 'ndjson';
			delimiter: string;
			hintBytes: number;
			blankColumns: number;
	  } & Chosen)
	| Refused;

interface Chosen extends EncodingFound {
	isGuessed: boolean;
}

interface Refused {
	kind: 'refused';
	code: TableFault;
	what: string;
	more?: TableErrorOptions;
}

export const hintOfEmpty = 'the first line must name the columns, such as email,name';
const hintOfBinary = 'export the table as CSV from its program, and use that file';

export const delimiters = [',', ';', '\t', '|'] as const;

export function sniff(prefix: Buffer, options: SniffOptions): Sniffed {
	if (prefix.length === 0 && options.format === 'ndjson') return noLines;
	if (prefix.length === 0) return refuse('empty', 'is empty: it has no header', { hint: hintOfEmpty });
	const what = recognizeBinary(prefix);
	if (what !== null) return refuse('binary', `is ${what}`);
	const found = chooseEncoding(prefix, options);
	if ('kind' in found) return found;
	const text = decodePrefix(prefix, found);
	if (looksBinary(text)) return refuse('binary', 'is a binary file, not text', { hint: hintOfBinary });
	const markup = options.format === 'ndjson' ? null : recognizeMarkup(text);
	if (markup !== null) return refuse('no_table', `is ${markup}`);
	const json = options.delimiter === 'auto' ? recognizeJson(text, options.format) : 'none';
	if (json === 'array') return refuse('json', arrayOfObjects);
	if (json === 'lines') return { ...noLines, ...found };
	const hint = readHint(text);
	const delimiter = chooseDelimiter(hint, text, options);
	if (delimiter === null) {
		const given = JSON.stringify(options.delimiter);
		return refuse(
			'bad_delimiter',
			`cannot be read with the delimiter ${given}: use auto, tab or a character`,
		);
	}
	const hintBytes = hint?.bytes ?? 0;
	const blankColumns = countBlankColumns(text, { delimiter, hintBytes, isWhole: options.isWhole });
	return { kind: 'text', ...found, format: 'csv', delimiter, hintBytes, blankColumns };
}

const noLines = {
	kind: 'text',
	format: 'ndjson',
	delimiter: '',
	hintBytes: 0,
	blankColumns: 0,
	encoding: 'utf-8',
	bomBytes: 0,
	isGuessed: false,
} as const;

/** Microsoft's `sep=;` is a hint for spreadsheets. It may be quoted or padded with delimiters. */
function readHint(text: string): { delimiter: string; bytes: number } | null {
	const found = /^"?sep=([^"\r\n\w])"?\1*(?=[\r\n]|$)/i.exec(text);
	return found === null ? null : { delimiter: found[1] ?? '', bytes: Buffer.byteLength(found[0]) };
}

const arrayOfObjects = `is one JSON array: write one object per line instead, with "jq -c '.[]' FILE" or "-o ndjson"`;

/** A text is NDJSON if it starts with an object, as CSV headers rarely do, or is an array with an object per line. */
function recognizeJson(text: string, format: SniffOptions['format']): 'lines' | 'array' | 'none' {
	const start = text.trimStart();
	if (start.startsWith('[')) {
		const items = start.slice(1).trimStart();
		if (items.startsWith(']') && items.slice(1).trim() === '') return 'lines';
		const gap = start.slice(1, start.length - items.length);
		if (gap.includes('\n') && beginsWithObjectLine(items)) return 'lines';
		if (beginsWithObject(items)) return 'array';
	}
	return format === 'ndjson' || beginsWithObject(start) ? 'lines' : 'none';
}

function beginsWithObject(text: string): boolean {
	return text.startsWith('{') && /^["}]/.test(text.slice(1).trimStart());
}

function beginsWithObjectLine(text: string): boolean {
	const end = text.indexOf('\n');
	const line = text.slice(0, Math.max(0, end)).trimEnd();
	const object = line.endsWith(',') ? line.slice(0, -1).trimEnd() : line;
	return object.startsWith('{') && object.endsWith('}');
}

/**
 * Picks the delimiter with which most of the first 20 rows have as many cells as the header. In a tie, the delimiter
 * with more columns wins.
 */
function detectDelimiter(text: string, isWhole: boolean): string {
	const bytes = Buffer.from(text);
	let best = { delimiter: ',', agreement: 0, width: 1 };
	for (const delimiter of delimiters) {
		const parsed = parseBlock({ bytes, delimiter, line: 1, isLast: isWhole, limit: 20 });

		const widths = parsed.rows.flatMap((row) => (row.kind === 'record' ? [row.cells.length] : []));
		const width = widths[0] ?? firstLineWidth(text, delimiter);
		const same = widths.filter((one) => one === width).length;
		const agreement = widths.length === 0 ? 0 : same / widths.length;
		const isBetter =
			agreement > best.agreement || (agreement === best.agreement && width > best.width) || best.width === 1;
		if (width > 1 && isBetter) best = { delimiter, agreement, width };
	}
	return best.delimiter;
}

/** Spreadsheets pad lines with delimiters. */
function countBlankColumns(
	text: string,
	{ delimiter, hintBytes, isWhole }: { delimiter: string; hintBytes: number; isWhole: boolean },
): number {
	const bytes = Buffer.from(text).subarray(hintBytes);
	const { rows } = parseBlock({ bytes, delimiter, line: 1, isLast: isWhole, limit: 1_000 });
	const header = rows[0]?.kind === 'record' ? rows[0].cells : [];
	if (header.at(-1)?.trim() !== '') return 0;
	const width = rows.reduce(
		(widest, row) => (row.kind === 'record' ? Math.max(widest, filledWidth(row.cells)) : widest),
		0,
	);
	return Math.max(0, header.length - Math.max(1, width));
}

function filledWidth(cells: readonly string[]): number {
	return cells.findLastIndex((cell) => cell.trim() !== '') + 1;
}

function firstLineWidth(text: string, delimiter: string): number {
	return (/^[^\r\n]*/.exec(text)?.[0] ?? '').split(delimiter).length;
}

function refuse(code: TableFault, what: string, more?: TableErrorOptions): Refused {
	return { kind: 'refused', code, what, ...(more !== undefined && { more }) };
}

function chooseEncoding(prefix: Buffer, options: SniffOptions): Chosen | Refused {
	return options.encoding === 'auto' ? findEncoding(prefix, options) : checkEncoding(prefix, options);
}

function findEncoding(prefix: Buffer, options: SniffOptions): Chosen | Refused {
	const unicode = detect(prefix, options);
	if (unicode !== null) return { ...unicode, isGuessed: false };
	const bomBytes = utf8Mark(prefix);
	const text = prefix.subarray(bomBytes);
	if (looksBinary(text.toString('latin1')))
		return refuse('binary', 'is a binary file, not text', { hint: hintOfBinary });
	const guess = guessEncoding(
		options.evidence ?? linesBeyondAscii(options.isWhole ? text : cutPartialCharacter(text)),
	);
	return guess.isStrong ? { encoding: guess.encoding, bomBytes, isGuessed: true } : unsure(guess);
}

/** If the prefix is pure ASCII, looks at `evidence` instead: the non-ASCII lines of the whole source. */
function detect(prefix: Buffer, { evidence, isWhole }: SniffOptions): EncodingFound | null {
	const lines = evidence?.length && isAscii(prefix.subarray(utf8Mark(prefix))) ? evidence : null;
	const found = detectUnicode(lines ?? prefix, lines !== null || isWhole);
	return found && { ...found, bomBytes: byMark(prefix)?.bomBytes ?? 0 };
}

function utf8Mark(prefix: Buffer): number {
	const marked = byMark(prefix);
	return marked?.encoding === 'utf-8' ? marked.bomBytes : 0;
}

function unsure({ candidates }: EncodingGuess): Refused {
	const details = candidates.map(({ encoding, sample }) => `${encoding}: ${sample}`);
	return refuse('unsure_encoding', 'is not UTF-8, and its encoding is uncertain', {
		details: ['in each of these possible encodings, the text would be:', ...details],
		hint: 'choose the encoding whose text is correct: --encoding NAME',
	});
}

function checkEncoding(prefix: Buffer, options: SniffOptions): Chosen | Refused {
	const encoding = canonical(options.encoding);
	if (!iconv.encodingExists(encoding) || noText.has(encoding)) {
		const what = `cannot be read: unknown encoding ${options.encoding} (utf-8, utf-16, windows-1250, gb18030, koi8-r, …)`;
		return refuse('unknown_encoding', what);
	}
	const chosen = { encoding, bomBytes: 0, isGuessed: false };
	const seems = detect(prefix, options);
	const marked = seems === null ? null : byMark(prefix);
	const bomBytes = marked?.bomBytes ?? utf8Mark(prefix);
	if (
		contradicts(encoding, seems?.encoding ?? null, marked !== null) ||
		isPlainUtf8(prefix, encoding, seems)
	) {
		const name = seems?.encoding ?? guessEncoding(linesBeyondAscii(prefix.subarray(bomBytes))).encoding;
		return refuse('wrong_encoding', `is not ${options.encoding}: it seems to be ${name}`);
	}
	if (encoding !== 'utf-16') return { ...chosen, bomBytes };
	return { ...chosen, encoding: 'utf-16le', ...(seems?.encoding.startsWith('utf-16') && seems) };
}

const noText = new Set(['base64', 'hex']);

/**
 * True for UTF-8 with at least one non-ASCII character, or three if `encoding` is multi-byte. Two multi-byte characters
 * may be valid UTF-8 by chance.
 */
function isPlainUtf8(prefix: Buffer, encoding: string, seems: EncodingFound | null): boolean {
	if (seems?.encoding !== 'utf-8' || /^(?:utf|cesu|unicode)/.test(encoding)) return false;
	const text = cutPartialCharacter(prefix);
	if (!isUtf8(text)) return false;
	const letters = text.toString().match(/[^\x00-\x7f]/gu)?.length ?? 0;
	return letters >= (iconv.encode('語中가가', encoding).length > 4 ? 3 : 1);
}

function canonical(name: string): string {
	const plain = name.toLowerCase().replace(/[\s_-]/g, '');
	if (/^(?:unicode11)?utf8$/.test(plain)) return 'utf-8';
	const [, order] = /^utf16(le|be|)$/.exec(plain === 'ucs2' ? 'utf16le' : plain) ?? [];
	if (order !== undefined) return `utf-16${order}`;
	const [, page] = /^(?:cp|windows)(125\d)$/.exec(plain) ?? [];
	return page === undefined ? name.toLowerCase() : `windows-${page}`;
}

/** Only a byte order mark, UTF-16 and invalid UTF-8 contradict the named encoding. `seems` is null for a code page. */
function contradicts(named: string, seems: string | null, isMarked: boolean): boolean {
	const isWide = (encoding: string | null) => encoding?.startsWith('utf-16') === true;
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

/** A NUL in the first line means a binary file. A NUL in a later line makes only its row bad. */
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

function recognizeBinary(prefix: Buffer): string | null {
	const start = prefix.toString('latin1', 0, 8192);
	if (start.startsWith('PK\x03\x04'))
		return officeEntries.test(start)
			? 'an Excel workbook (.xlsx) or another Office file: save it as CSV'
			: 'a zip archive: unpack it first';
	return signatures.find(([magic]) => magic.test(start))?.[1] ?? null;
}

const officeEntries =
	/\[Content_Types\]\.xml|xl\/|_rels\/|docProps\/|application\/vnd\.oasis|Index\/|Index\.zip/;

const signatures: readonly (readonly [magic: RegExp, what: string])[] = [
	[
		/^\xd0\xcf\x11\xe0/,
		'an old Office file (.xls or .doc), or one with a password: open it and save it as CSV',
	],
	[/^\x1f\x8b/, 'gzip-compressed: unpack it with "gzip -dc FILE | mailctl … -"'],
	[
		/^(?:BZh|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf|Rar!|%PDF-|\{\\rtf|\x89PNG|\xff\xd8\xff|SQLite format 3|\x7fELF)/,
		'not a text file with rows: save the table as CSV, and give that file',
	],
];

function recognizeMarkup(text: string): string | null {
	if (/^\s*<(?:!doctype html|html|head|meta|style|table)[\s>]/i.test(text))
		return 'an HTML page, which some programs write as .xls: open it in a spreadsheet and save it as CSV';
	return /^\s*<\?xml\s/.test(text) ? 'an XML document: open it in a spreadsheet and save it as CSV' : null;
}
