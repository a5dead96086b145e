/** A mail cut into its parts (RFC 5322, RFC 2046), whatever it is like: hostile and broken input gives fewer parts. */
import { type ByteString, decodeCharset, decodeTransfer, isForeign } from './decode.js';
import { type Field, findField, isFieldStart, type Line, parseFields, parseParameters } from './fields.js';

/** One part; multiparts are followed by their children in `Mail.parts`. */
export interface Part {
	/** `1` is the mail itself, `1.2` its second part. */
	path: string;
	/** Lower case; `text/plain` when none is given. */
	type: string;
	parameters: ReadonlyMap<string, string>;
	fields: readonly Field[];
	/** Still encoded. */
	body: ByteString;
	/** Line of the file where the body begins, from 1. */
	line: number;
	/** Lower case; `''` when none is given. */
	encoding: string;
	/** A multipart with children: its body is theirs. */
	isMultipart: boolean;
	/** Decoded lines, at most 5,000 of at most 1,000 characters; decoded when first asked for. */
	lines(): readonly Line[];
}

export interface Mail {
	/** Header fields of the mail itself. */
	fields: readonly Field[];
	/** In the order of the file, the mail itself first. At least one. */
	parts: readonly Part[];
}

/** What is looked at of one mail; the rest is left unread. A report is small: what it returns may be large. */
const maxBytes = 4 * 1024 * 1024;
const maxDepth = 8;
const maxParts = 100;
const maxHeaderLines = 2000;
const maxText = 256 * 1024;
const maxTextLines = 5000;
const maxLine = 1000;
/** Beyond these nothing is parted: each level of a nested mail counts the lines of all below it. */
const maxBodyLines = 200_000;
/**
 * Of one mail, in charsets that have to be translated; what comes after is read as it stands. UTF-7 takes 0.8 ms a
 * kilobyte: a mail full of it stopped a server for three seconds.
 */
const maxForeignText = 256 * 1024;

/** Cuts a mail into parts. A message within (message/rfc822) stays one part. Never throws. */
export function parseMail(bytes: Buffer): Mail {
	const text = bytes.toString('latin1', 0, maxBytes);
	const reading: Reading = { parts: [], foreignLeft: maxForeignText };
	const root = readPart({ text, line: 1 }, '1', reading);
	return { fields: root.fields, parts: reading.parts };
}

/** The header fields a part holds as its content: a returned message, or its header alone. */
export function fieldsWithin(part: Part): Field[] {
	const lines = part.lines();
	const first = lines.findIndex(({ text }) => text.trim() !== '');
	return first === -1 ? [] : parseFields(lines.slice(first));
}

interface Reading {
	parts: Part[];
	/** Bytes that may still be translated. */
	foreignLeft: number;
}

interface Slice {
	text: ByteString;
	/** Line of the file where it begins. */
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

/** A line that is no field ends the header too: some systems forget the blank line, or the header. */
function splitHeader({ text, line }: Slice): { header: Line[]; body: Slice } {
	const header: Line[] = [];
	let at = 0;
	let number = line;
	while (at < text.length && header.length < maxHeaderLines) {
		const end = lineEnd(text, at);
		const content = text.slice(at, end).trimEnd();
		const isBlank = content === '';
		const isEnvelope = header.length === 0 && content.startsWith('From ');
		const isPassed = isEnvelope || (isBlank && header.length === 0 && number === 1);
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

/** Parts between the delimiter lines; the last may lack its end. Preamble and epilogue are left out. */
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

/** Behind the line end at or after `from`. */
function lineEnd(text: string, from: number): number {
	const end = text.indexOf('\n', from);
	return end === -1 ? text.length : end + 1;
}

function splitLines(text: string, max: number): string[] {
	return text.split('\n', max).map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
}
