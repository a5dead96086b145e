/**
 * Quoted-printable (RFC 2045 s.6.7) in fragments. A fragment is encoded as if it began a line, and can be appended
 * at any column: where its first line does not fit, a soft break goes before it. So the constant pieces of a body
 * are encoded once and a recipient's values are only laid between them.
 */
import type { ByteSink } from './byte-sink.js';

/** Encoded octets and what appending needs to know of them: the length of the first and the last line. */
export interface Fragment {
	readonly octets: Uint8Array;
	readonly headLength: number;
	readonly tailLength: number;
	readonly hasBreak: boolean;
}

/** RFC 2045: 76 characters a line, the `=` of a soft break included. */
const maxColumn = 75;
const softBreak = '=\r\n';
const from = 'From ';
/** Characters from which on finding a value again is cheaper than encoding it again. */
const worthKeeping = 32;

const atoms: readonly string[] = Array.from({ length: 256 }, (_, byte) =>
	(byte >= 0x20 && byte <= 0x7e && byte !== 0x3d) || byte === 0x09
		? String.fromCharCode(byte)
		: `=${byte.toString(16).toUpperCase().padStart(2, '0')}`,
);

/** Encodes a text whose line ends are LF, which become CRLF (RFC 2046 s.4.1.1); a CR is encoded. */
export function encodeFragment(text: string): Fragment {
	const lines = text.split('\n');
	const last = lines.length - 1;
	return measure(lines.map((line, index) => encodeLine(line, index === last)).join('\r\n'));
}

/** A value that is plain is taken as it is, in lines where it is long (the addresses of links). */
function encodeLong(value: string): Fragment {
	if (!isPlain(value)) return encodeFragment(value);
	let text = value.slice(0, maxColumn);
	for (let from = maxColumn; from < value.length; from += maxColumn) {
		const line = value.slice(from, from + maxColumn);
		if (line.startsWith('.') || line.startsWith('F')) return encodeFragment(value);
		text += softBreak + line;
	}
	return measure(text);
}

/** Appends fragments to a message, counting columns. */
export class QuotedPrintableLine {
	readonly #sink: ByteSink;
	#column = 0;
	#last: { value: string; fragment: Fragment } | null = null;

	constructor(sink: ByteSink) {
		this.#sink = sink;
	}

	/** Encodes and appends. A value that comes again and again, as what all links begin with, is encoded once. */
	appendValue(value: string): void {
		if (value.length >= worthKeeping) {
			if (this.#last?.value !== value) this.#last = { value, fragment: encodeLong(value) };
			this.append(this.#last.fragment);
		} else if (isPlain(value)) {
			// Most values: taken as they are.
			this.#makeRoom(value.length);
			this.#sink.text(value);
			this.#column += value.length;
		} else this.append(encodeFragment(value));
	}

	append({ octets, headLength, tailLength, hasBreak }: Fragment): void {
		if (octets.length === 0) return;
		this.#makeRoom(headLength);
		this.#sink.octets(octets);
		this.#column = hasBreak ? tailLength : this.#column + tailLength;
	}

	#makeRoom(length: number): void {
		if (this.#column === 0 || this.#column + length <= maxColumn) return;
		this.#sink.text(softBreak);
		this.#column = 0;
	}
}

/** No character to encode, no blank at the end, and no beginning that is special at the start of a line. */
function isPlain(value: string): boolean {
	const first = value.charCodeAt(0);
	if (first === 0x2e || first === 0x46 || value.charCodeAt(value.length - 1) === 0x20) return false;
	return !/[^ -<>-~]/.test(value);
}

function measure(text: string): Fragment {
	const octets = Buffer.from(text, 'latin1');
	const first = text.indexOf('\r\n');
	if (first === -1) return { octets, headLength: text.length, tailLength: text.length, hasBreak: false };
	const tailLength = text.length - text.lastIndexOf('\r\n') - 2;
	return { octets, headLength: first, tailLength, hasBreak: true };
}

function encodeLine(line: string, isLast: boolean): string {
	const bytes = Buffer.from(line, 'utf8');
	let encoded = '';
	let column = 0;
	for (const [index, byte] of bytes.entries()) {
		let atom = atoms[byte] ?? '';
		// A blank at the end of a line may be lost on the way; what follows the fragment may be a line end.
		if (atom.length === 1 && index === bytes.length - 1 && byte <= 0x20) atom = hex(byte);
		if (column + atom.length > maxColumn) {
			encoded += softBreak;
			column = 0;
		}
		if (column === 0 && isSpecialAtStart(bytes, index, isLast)) atom = hex(byte);
		encoded += atom;
		column += atom.length;
	}
	return encoded;
}

/**
 * A dot (lost when a relay forgets to stuff it) and `From ` (mbox writers put a `>` before it) must not begin a
 * line. The end of a fragment may be completed by the next one: `F` + `rom me`.
 */
function isSpecialAtStart(bytes: Buffer, index: number, isLast: boolean): boolean {
	if (bytes[index] === 0x2e) return true;
	if (bytes[index] !== 0x46) return false;
	const start = bytes.toString('latin1', index, index + from.length);
	return start === from || (isLast && index + start.length === bytes.length && from.startsWith(start));
}

function hex(byte: number): string {
	return `=${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}
