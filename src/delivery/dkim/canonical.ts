/** What a DKIM signature covers: which fields of a message, and the relaxed forms of these and of its body (RFC 6376 s.3.4). */

/** A header field: `text` from its name to before its line end, folding included. */
export interface HeaderField {
	/** In lower case. */
	name: string;
	text: string;
}

/** A message split at its empty line; without one it is all header. */
export interface Parts {
	/** From the top down. */
	fields: HeaderField[];
	body: Buffer;
}

/** `bytes` has CRLF line ends, as in mails made here. Lines that are no field are left out. */
export function splitMessage(bytes: Buffer): Parts {
	const end = bytes.indexOf('\r\n\r\n');
	const header = bytes.toString('latin1', 0, end === -1 ? bytes.length : end);
	const fields: HeaderField[] = [];
	for (let start = 0; start < header.length; ) {
		const next = endOfField(header, start);
		const text = header.slice(start, next);
		const name = nameOf(text).toLowerCase();
		if (name !== '') fields.push({ name, text });
		start = next + 2;
	}
	return { fields, body: bytes.subarray(end === -1 ? bytes.length : end + 4) };
}

/** The first line end that is not followed by white space: that would go on with the field. */
function endOfField(header: string, start: number): number {
	let end = header.indexOf('\r\n', start);
	while (end !== -1 && isWhite(header.charCodeAt(end + 2))) end = header.indexOf('\r\n', end + 2);
	return end === -1 ? header.length : end;
}

/** As it is written; empty where there is none. */
function nameOf(text: string): string {
	return text.slice(0, Math.max(0, text.indexOf(':'))).trimEnd();
}

/**
 * Named once more than they occur, absent ones too: otherwise a second Subject or Reply-To added on the way would pass
 * under our signature (RFC 6376 s.8.15).
 */
const sealed: ReadonlyMap<string, string> = new Map(
	[
		'From',
		'Reply-To',
		'To',
		'Cc',
		'Subject',
		'Date',
		'Message-ID',
		'MIME-Version',
		'Content-Type',
		'Content-Transfer-Encoding',
	].map((name) => [name.toLowerCase(), name]),
);
/** Sealed where they occur; a relay may add its own where they do not. RFC 8058 s.4 wants the first two signed. */
const signedIfPresent =
	/^(?:list-unsubscribe|list-unsubscribe-post|list-.+|content-.+|in-reply-to|references|feedback-id|auto-submitted)$/;

export interface SignedFields {
	/** The h= tag: names, in the order of signing. */
	names: string[];
	/** The texts of existing fields, in that order: of several with one name the lowest comes first (s.5.4.2). */
	texts: string[];
}

/** `fields` from the top down. */
export function signedFields(fields: readonly HeaderField[]): SignedFields {
	/** The texts of each name from the lowest up. */
	const present = new Map<string, string[]>();
	for (const { name, text } of fields) {
		const above = present.get(name);
		if (above === undefined) present.set(name, [text]);
		else above.unshift(text);
	}
	const signed: SignedFields = { names: [], texts: [] };
	const add = (name: string, texts: readonly string[]) => {
		for (const text of texts) {
			signed.names.push(name);
			signed.texts.push(text);
		}
		signed.names.push(name);
	};
	for (const [name, spelled] of sealed) add(spelled, present.get(name) ?? []);
	for (const [name, texts] of present)
		if (!sealed.has(name) && signedIfPresent.test(name)) add(nameOf(texts.at(-1) ?? ''), texts);
	return signed;
}

const unrelaxed = /^ |[\t\r]| {2}| $/;

/**
 * RFC 6376 s.3.4.2: name in lower case, unfolded, every run of white space one blank, none at the ends. Without the
 * line end.
 */
export function relaxedField(text: string): string {
	const name = nameOf(text).toLowerCase();
	const start = text.indexOf(':') + 1;
	const value = text.slice(text[start] === ' ' ? start + 1 : start);
	if (!unrelaxed.test(value)) return `${name}:${value}`;
	const unfolded = value.replace(/\r\n/g, '').replace(/[ \t]+/g, ' ');
	return `${name}:${unfolded.replace(/^ | $/g, '')}`;
}

/** Each of these fields in its relaxed form, with its line end. */
export function relaxedHeader(texts: readonly string[]): string {
	return texts.map((text) => `${relaxedField(text)}\r\n`).join('');
}

const cr = 0x0d;
const lf = 0x0a;
const blank = 0x20;
const tab = 0x09;

function isWhite(code: number): boolean {
	return code === blank || code === tab;
}

/**
 * RFC 6376 s.3.4.4: runs of white space are one blank, none ends a line, no empty lines at the end. A body of only
 * empty lines is empty; any other ends with CRLF. One pass over the bytes: 12 µs for 10 KB, where expressions on a
 * string take 60.
 */
export function relaxedBody(body: Buffer): Buffer {
	const out = Buffer.allocUnsafe(body.length + 2);
	let length = 0;
	let lineStart = 0;
	/** The index after the last line that is not empty. */
	let end = 0;
	let hasGap = false;
	for (let at = 0; at < body.length; at += 1) {
		const byte = body[at] ?? 0;
		if (isWhite(byte)) hasGap = true;
		else if (byte === cr && body[at + 1] === lf) {
			const isEmpty = length === lineStart;
			out[length] = cr;
			out[length + 1] = lf;
			length += 2;
			lineStart = length;
			if (!isEmpty) end = length;
			hasGap = false;
			at += 1;
		} else {
			if (hasGap) out[length++] = blank;
			hasGap = false;
			out[length++] = byte;
		}
	}
	if (length > lineStart) {
		out[length] = cr;
		out[length + 1] = lf;
		end = length + 2;
	}
	return out.subarray(0, end);
}
