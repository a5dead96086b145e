/**
 * Parses a mail into header fields (RFC 5322), parts (RFC 2045, RFC 2046) and decoded text (RFC 2047), each with its
 * line in the file. Hostile and broken input gives fewer parts, never an error.
 *
 * postal-mime 4.0 gives no line numbers. It takes 8 times the CPU on real bounces, and 18 s for 4 MiB of short lines.
 */
import iconv from 'iconv-lite';

export interface Line {
	text: string;
	number: number;
}

export interface Field {
	name: string;
	value: string;
	line: number;
}

export interface Part {
	path: string;
	type: string;
	parameters: ReadonlyMap<string, string>;
	fields: readonly Field[];
	body: ByteString;
	line: number;
	encoding: string;
	isMultipart: boolean;
	lines(): readonly Line[];
}

export interface Place {
	part: string;
	type: string;
	/** Line of the file, from 1. Inside an encoded part, the line where the encoded text begins. */
	line: number;
}

export function placeOf({ path, type, line }: Pick<Part, 'path' | 'type' | 'line'>): Place {
	return { part: path, type, line };
}

export interface Mail {
	type: string;
	fields: readonly Field[];
	parts: readonly Part[];
}

/** A text with one character per byte, so that a mail can be split before it is decoded. */
type ByteString = string;

/** The parser reads only this much of a mail. A report is short, but the message that it returns may be large. */
export const maxMailBytes = 4 * 1024 * 1024;
const maxDepth = 8;
const maxParts = 100;
const maxHeaderLines = 2000;
const maxEmptyLines = 20;
const maxText = 256 * 1024;
const maxTextLines = 5000;
const maxLine = 1000;
/** Limits the lines that the parser searches for a boundary. It searches a nested part once per enclosing part. */
const maxBodyLines = 200_000;
/** Bytes per mail in charsets other than UTF-8. UTF-7 takes 0.8 ms per kilobyte; one mail blocked a server for 3 s. */
const maxForeignText = 256 * 1024;

/** Reads to the end, as SMTP (RFC 5321 s.4.1.1.4) and the writer of a pipe require, but keeps only the first 4 MiB. */
export async function beginOf(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
	const kept: Buffer[] = [];
	let length = 0;
	for await (const piece of stream) {
		const bytes = Buffer.from(piece);
		if (length < maxMailBytes) kept.push(bytes);
		length += bytes.length;
	}
	return Buffer.concat(kept).subarray(0, maxMailBytes);
}

export function parseMail(bytes: Buffer): Mail {
	return readMail({ text: withLineFeeds(bytes.toString('latin1', 0, maxMailBytes)), line: 1 }, '1');
}

export function parseWithin({ path, line, body, encoding }: Part): Mail {
	const text = encoding === 'base64' ? decodeTransfer(body, encoding).toString('latin1') : body;
	return readMail({ text, line }, path);
}

function readMail(slice: Slice, path: string): Mail {
	const reading: Reading = { parts: [], foreignLeft: maxForeignText };
	const root = readPart(slice, path, reading);
	return { type: root.type, fields: root.fields, parts: reading.parts };
}

/** Some systems end lines with CR only. In a text with line feeds, a lone CR is an ordinary character. */
function withLineFeeds(text: ByteString): ByteString {
	const header = text.slice(0, 2000);
	return header.includes('\n') || !header.includes('\r') ? text : text.replace(/\r\n?/g, '\n');
}

export function fieldsWithin(part: Part): Field[] {
	const lines = part.lines();
	const first = lines.findIndex(({ text }) => text.trim() !== '');
	return first === -1 ? [] : parseFields(lines.slice(first));
}

interface Reading {
	parts: Part[];
	foreignLeft: number;
}

interface Slice {
	text: ByteString;
	line: number;
}

function readPart(slice: Slice, path: string, reading: Reading): Part {
	const { parts } = reading;
	const { header, body } = splitHeader(slice);
	const fields = parseFields(header);
	const { value, parameters } = parseParameters(findField(fields, 'content-type')?.value ?? '');
	const encoding = (findField(fields, 'content-transfer-encoding')?.value ?? '').trim().toLowerCase();
	let decoded: Line[] | undefined;
	const part: Part = {
		path,
		type: value.includes('/') ? (value.split(/\s/)[0] ?? value) : 'text/plain',
		parameters,
		fields,
		body: body.text,
		line: body.line,
		encoding,
		isMultipart: false,
		lines: () => {
			decoded ??= textLines(part, reading);
			return decoded;
		},
	};
	parts.push(part);
	const depth = path.split('.').length;
	const boundary = parameters.get('boundary') ?? '';
	if (!part.type.startsWith('multipart/') || boundary === '' || depth >= maxDepth) return part;
	for (const [at, child] of splitBody(body, boundary).entries()) {
		if (parts.length >= maxParts) break;
		part.isMultipart = true;
		readPart(child, `${path}.${at + 1}`, reading);
	}
	return part;
}

/** A line that is not a field also ends the header. Some systems omit the blank line or the whole header. */
function splitHeader({ text, line }: Slice): { header: Line[]; body: Slice } {
	const header: Line[] = [];
	let at = 0;
	let number = line;
	while (at < text.length && header.length < maxHeaderLines) {
		const end = lineEnd(text, at);
		const content = text.slice(at, end).trimEnd();
		const isBlank = content === '';
		const isEnvelope = header.length === 0 && /^>?From /.test(content);
		const isPassed = isEnvelope || (isBlank && header.length === 0 && line === 1 && number <= maxEmptyLines);
		const isHeader = /^[ \t]/.test(content) ? header.length > 0 : isFieldStart(content);
		if (!isBlank && !isEnvelope && !isHeader) break;
		at = end;
		number += 1;
		if (isBlank && !isPassed) break;
		if (isHeader) header.push({ text: content, number: number - 1 });
	}
	return { header, body: { text: text.slice(at), line: number } };
}

function textLines(part: Part, reading: Reading): Line[] {
	const isEncoded = part.encoding === 'base64' || part.encoding === 'quoted-printable';
	const bytes = decodeTransfer(part.body.slice(0, maxText), part.encoding);
	const charset = part.parameters.get('charset');
	if (isForeign(charset)) reading.foreignLeft -= bytes.length;
	const text = decodeCharset(bytes, reading.foreignLeft < 0 ? undefined : charset);
	return splitLines(text, maxTextLines).map((line, at) => ({
		text: line.slice(0, maxLine),
		number: part.line + (isEncoded ? 0 : at),
	}));
}

function splitBody({ text, line }: Slice, boundary: string): Slice[] {
	const delimiter = `--${boundary}`;
	const slices: Slice[] = [];
	let number = line;
	let open: { at: number; line: number } | null = null;
	const lastLine = line + maxBodyLines;
	for (let at = 0; at < text.length && slices.length < maxParts && number < lastLine; number += 1) {
		const end = lineEnd(text, at);
		const rest = text.startsWith(delimiter, at) ? text.slice(at + delimiter.length, end).trim() : null;
		if (rest === '' || rest === '--') {
			if (open !== null) slices.push({ text: text.slice(open.at, at), line: open.line });
			open = rest === '' ? { at: end, line: number + 1 } : null;
		}
		at = end;
	}
	if (open !== null) slices.push({ text: text.slice(open.at), line: open.line });
	return slices;
}

function lineEnd(text: string, from: number): number {
	const end = text.indexOf('\n', from);
	return end === -1 ? text.length : end + 1;
}

function splitLines(text: string, max: number): string[] {
	return text.split('\n', max).map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
}

const maxFields = 1000;
const maxValue = 10_000;

const fieldStart = /^([!-9;-~]{1,100})[ \t]*:[ \t]*/;

export function isFieldStart(line: string): boolean {
	return fieldStart.test(line);
}

export function parseFields(lines: readonly Line[]): Field[] {
	const fields: Field[] = [];
	for (const { text, number } of lines) {
		if (text.trim() === '' || fields.length >= maxFields) break;
		const last = fields.at(-1);
		if (/^[ \t]/.test(text) && last !== undefined) {
			last.value = `${last.value} ${text.trim()}`.trim().slice(0, maxValue);
			continue;
		}
		const start = fieldStart.exec(text);
		if (start === null) continue;
		const value = text.slice(start[0].length).trim().slice(0, maxValue);
		fields.push({ name: (start[1] ?? '').toLowerCase(), value, line: number });
	}
	return fields;
}

export function findField(fields: readonly Field[], name: string): Field | null {
	return fields.find((field) => field.name === name) ?? null;
}

export function fieldValue(fields: readonly Field[], name: string): string | null {
	const value = findField(fields, name)?.value ?? '';
	return value === '' ? null : value;
}

export function valuesOf(fields: readonly Field[], ...names: readonly string[]): string {
	return fields
		.filter(({ name }) => names.includes(name))
		.map(({ value }) => value)
		.join(' ');
}

function parseParameters(value: string): { value: string; parameters: Map<string, string> } {
	const parameters = new Map<string, string>();
	for (const [, name = '', given = ''] of value.matchAll(/;\s*([^=;]*)=\s*("(?:[^"\\]|\\.)*"|[^;]*)/g)) {
		const text = given.startsWith('"') ? given.replace(/^"|"$/g, '').replace(/\\(.)/g, '$1') : given.trim();
		const key = name.trim().toLowerCase();
		if (!parameters.has(key)) parameters.set(key, text);
	}
	return { value: (value.split(';', 1)[0] ?? '').trim().toLowerCase(), parameters };
}

export function decodeTransfer(body: ByteString, encoding: string): Buffer {
	if (encoding === 'base64') return Buffer.from(body, 'base64');
	if (encoding === 'quoted-printable') return Buffer.from(quotedPrintable(body), 'latin1');
	return Buffer.from(body, 'latin1');
}

export function isForeign(charset: string | undefined): boolean {
	return !['', 'us-ascii', 'utf-8', 'utf8'].includes((charset ?? '').trim().toLowerCase());
}

function decodeCharset(bytes: Buffer, charset: string | undefined): string {
	const name = (charset ?? '').trim().toLowerCase();
	if (!isForeign(name)) return utf8OrLatin1(bytes);
	try {
		// Only TextDecoder supports ISO-2022-JP. Only iconv-lite supports UTF-7 and further code pages.
		return new TextDecoder(name).decode(bytes);
	} catch {
		return iconv.encodingExists(name) ? iconv.decode(bytes, name) : utf8OrLatin1(bytes);
	}
}

export function decodeWords(value: ByteString): string {
	const joined = value.replace(/\?=[ \t]+=\?/g, '?==?');
	return utf8OrLatin1(Buffer.from(joined, 'latin1')).replace(
		/=\?([\w.:-]{1,40})(?:\*[\w-]{1,20})?\?([bq])\?([^?\s]{0,2000})\?=/gi,
		(_, charset: string, kind: string, text: string) => {
			const isBase64 = kind.toLowerCase() === 'b';
			const bytes = isBase64
				? Buffer.from(text, 'base64')
				: Buffer.from(quotedPrintable(text.replaceAll('_', ' ')), 'latin1');
			return decodeCharset(bytes, charset);
		},
	);
}

function quotedPrintable(text: ByteString): ByteString {
	return text
		.replace(/=[ \t]{0,80}\r?\n/g, '')
		.replace(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function utf8OrLatin1(bytes: Buffer): string {
	try {
		return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
	} catch {
		return bytes.toString('latin1');
	}
}
