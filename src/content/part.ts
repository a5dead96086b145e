import { renderSlots, type Template } from './fill-variables.js';
import type { Recipient } from './types.js';

export type BodyValues = Pick<Recipient, 'variables' | 'tracking'>;

export interface Part {
	readonly fields: string;
	write(out: ByteSink, values: BodyValues): void;
	isFreeOf(boundary: string): boolean;
}

interface PartSource<S> {
	template: Template<S>;
	subtype: 'plain' | 'html';
	fill: (slot: S, values: BodyValues, write: (text: string) => void) => void;
}

export function compilePart<S>({ template, subtype, fill }: PartSource<S>): Part {
	const { literals, slots } = template;
	const written = literals.join('');
	if (slots.length === 0 && isSevenBit(written)) {
		const octets = ownOctets(crlf(written));
		return part(subtype, '7bit', { ...constantBody(octets), isFreeOf: (text) => !octets.includes(text) });
	}
	const fragments = encodeAll(literals);
	if (!isMuchSmallerInBase64(written, fragments))
		return part(
			subtype,
			'quoted-printable',
			quotedPrintable({ fragments: keepFragments(fragments), slots }, fill),
		);
	if (slots.length === 0) return part(subtype, 'base64', constantBody(ownOctets(base64(written))));
	return part(subtype, 'base64', base64Body(template, fill));
}

interface Body {
	write: Part['write'];
	isFreeOf?: Part['isFreeOf'];
}

function part(subtype: string, encoding: string, body: Body): Part {
	const charset = encoding === '7bit' ? 'us-ascii' : 'utf-8';
	const type = `Content-Type: text/${subtype}; charset=${charset}\r\n`;
	const fields = `${type}Content-Transfer-Encoding: ${encoding}\r\n`;
	// Neither quoted-printable nor base64 can contain `=_`.
	return { fields, isFreeOf: (boundary) => boundary.startsWith('=_'), ...body };
}

/** Allocates separately, because a buffer from Node's pool would keep its whole 8 KiB slab in memory. */
function ownOctets(text: string): Buffer {
	const octets = Buffer.allocUnsafeSlow(text.length);
	octets.write(text, 'latin1');
	return octets;
}

function constantBody(octets: Buffer): Body {
	return { write: (out) => out.octets(octets) };
}

function base64Body<S>(template: Template<S>, fill: PartSource<S>['fill']): Body {
	return {
		write: (out, values) => out.text(base64(renderSlots(template, (slot) => filledText(slot, values, fill)))),
	};
}

/** Encodes equal short literals once, because the text between variables, or between links, often repeats. */
function encodeAll(literals: readonly string[]): Fragment[] {
	const known = new Map<string, Fragment>();
	return literals.map((literal) => {
		if (literal.length > shortLiteral) return encodeFragment(literal);
		const fragment = known.get(literal) ?? encodeFragment(literal);
		known.set(literal, fragment);
		return fragment;
	});
}

const shortLiteral = 64;

function quotedPrintable<S>(
	{ fragments, slots }: { fragments: readonly Fragment[]; slots: readonly S[] },
	fill: PartSource<S>['fill'],
): Body {
	return {
		write: (out, values) => {
			const line = new QuotedPrintableLine(out);
			const write = (text: string) => line.appendValue(text);
			for (let index = 0; index < fragments.length; index++) {
				const slot = slots[index - 1];
				const fragment = fragments[index];
				if (slot !== undefined) fill(slot, values, write);
				if (fragment !== undefined) line.append(fragment);
			}
		},
	};
}

function filledText<S>(slot: S, values: BodyValues, fill: PartSource<S>['fill']): string {
	let text = '';
	fill(slot, values, (piece) => {
		text += piece;
	});
	return text;
}

/** True for 7bit data (RFC 2045 s.2.7) that relays keep: no line starts with `From ` or a dot, or ends in a blank. */
function isSevenBit(text: string): boolean {
	if (!/^[\t\n -~]*$/.test(text)) return false;
	return text.split('\n').every((line) => line.length <= 998 && !/^(From |\.)|[ \t]$/.test(line));
}

/** True if base64 is a fifth smaller. Otherwise quoted-printable is better: it is readable and cheaper to join. */
function isMuchSmallerInBase64(written: string, fragments: readonly Fragment[]): boolean {
	const quoted = fragments.reduce((sum, fragment) => sum + fragment.octets.length, 0);
	const plain = Math.ceil(Buffer.byteLength(written) / 3) * 4;
	return plain * (78 / 76) * 1.25 < quoted;
}

function base64(text: string): string {
	return (
		Buffer.from(crlf(text), 'utf8')
			.toString('base64')
			.match(/.{1,76}/g) ?? []
	).join('\r\n');
}

/** RFC 2046 s.4.1.1 requires CRLF in text parts. */
function crlf(text: string): string {
	return text.replaceAll('\n', '\r\n');
}

interface Fragment {
	readonly octets: Uint8Array;
	readonly headLength: number;
	readonly tailLength: number;
	readonly hasBreak: boolean;
}

/** RFC 2045 allows 76 characters per line, including the `=` of a soft break. */
const maxColumn = 75;
const softBreak = '=\r\n';
const from = 'From ';
const worthKeeping = 32;

const hexDigits = Buffer.from('0123456789ABCDEF', 'latin1');

/** The octets may lie in a slab of Node's buffer pool. */
function encodeFragment(text: string): Fragment {
	const source = Buffer.from(text, 'utf8');
	const octets = Buffer.allocUnsafe(source.length * 3 + Math.ceil(source.length / 24) * softBreak.length);
	let at = 0;
	let column = 0;
	let headLength = -1;
	const breakLine = (isSoft: boolean) => {
		if (isSoft) octets[at++] = equals;
		if (headLength === -1) headLength = column + (isSoft ? 1 : 0);
		octets[at++] = 0x0d;
		octets[at++] = 0x0a;
		column = 0;
	};
	for (let index = 0; index < source.length; index++) {
		const byte = source[index] ?? 0;
		if (byte === 0x0a) {
			breakLine(false);
			continue;
		}
		// Relays may drop a blank at the end of a line.
		const isLast = index === source.length - 1 || source[index + 1] === 0x0a;
		const isPlain = isPlainByte(byte) && !(isLast && byte <= 0x20);
		if (column + (isPlain ? 1 : 3) > maxColumn) breakLine(true);
		if (isPlain && !(column === 0 && isSpecialAtStart(source, index))) {
			octets[at++] = byte;
			column += 1;
			continue;
		}
		octets[at++] = equals;
		octets[at++] = hexDigits[byte >> 4] ?? 0;
		octets[at++] = hexDigits[byte & 15] ?? 0;
		column += 3;
	}
	const hasBreak = headLength !== -1;
	return {
		octets: octets.subarray(0, at),
		headLength: hasBreak ? headLength : column,
		tailLength: column,
		hasBreak,
	};
}

/** Copies fragments out of Node's slabs of 8 KiB, because each kept fragment would keep its whole slab in memory. */
function keepFragments(fragments: readonly Fragment[]): Fragment[] {
	const distinct = new Set(fragments);
	let size = 0;
	for (const { octets } of distinct) size += octets.length;
	const memory = new Uint8Array(size);
	const kept = new Map<Fragment, Fragment>();
	let at = 0;
	for (const fragment of distinct) {
		const { length } = fragment.octets;
		memory.set(fragment.octets, at);
		kept.set(fragment, { ...fragment, octets: memory.subarray(at, at + length) });
		at += length;
	}
	return fragments.map((fragment) => kept.get(fragment) ?? fragment);
}

const equals = 0x3d;

function isPlainByte(byte: number): boolean {
	return (byte >= 0x20 && byte <= 0x7e && byte !== equals) || byte === 0x09;
}

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

class QuotedPrintableLine {
	readonly #sink: ByteSink;
	#column = 0;
	#last: { value: string; fragment: Fragment } | null = null;

	constructor(sink: ByteSink) {
		this.#sink = sink;
	}

	/** Keeps the last long value encoded, because all click URLs of a mail start with the same text. */
	appendValue(value: string): void {
		if (value.length >= worthKeeping) {
			if (this.#last?.value !== value) this.#last = { value, fragment: encodeLong(value) };
			this.append(this.#last.fragment);
		} else if (isPlain(value)) {
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

/** True if the value needs no encoding, even at the start of a line (`.`, `From `) or at its end (a blank). */
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

/** Relays drop a dot at the start of a line, and mbox writers put `>` before `From `. */
function isSpecialAtStart(source: Buffer, index: number): boolean {
	const byte = source[index];
	if (byte === 0x2e) return true;
	if (byte !== 0x46) return false;
	const start = source.toString('latin1', index, index + from.length);
	return start === from || (index + start.length === source.length && from.startsWith(start));
}

/** Up to this length, a loop is faster than a native call. */
const shortLength = 96;

/** Collects a message as bytes, because joining strings and encoding the result took half the time of composing. */
export class ByteSink {
	#bytes: Buffer;
	#length = 0;

	constructor(memory: Buffer) {
		this.#bytes = memory;
	}

	text(text: string): void {
		this.#reserve(text.length);
		const [bytes, start, length] = [this.#bytes, this.#length, text.length];
		if (length > shortLength) bytes.write(text, start, 'latin1');
		else for (let index = 0; index < length; index++) bytes[start + index] = text.charCodeAt(index);
		this.#length = start + length;
	}

	octets(octets: Uint8Array): void {
		this.#reserve(octets.length);
		this.#bytes.set(octets, this.#length);
		this.#length += octets.length;
	}

	endLine(): void {
		if (this.#bytes[this.#length - 1] !== 0x0a || this.#length === 0) this.text('\r\n');
	}

	take(): Buffer {
		return this.#bytes.subarray(0, this.#length);
	}

	#reserve(more: number): void {
		const needed = this.#length + more;
		if (needed <= this.#bytes.length) return;
		const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
		larger.set(this.#bytes.subarray(0, this.#length));
		this.#bytes = larger;
	}
}
