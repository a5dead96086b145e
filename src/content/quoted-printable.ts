import type { ByteSink } from './byte-sink.js';

export interface Fragment {
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

/** LF becomes CRLF; a CR is encoded. The octets may share memory (`keepFragments`). */
export function encodeFragment(text: string): Fragment {
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
export function keepFragments(fragments: readonly Fragment[]): Fragment[] {
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

export class QuotedPrintableLine {
	readonly #sink: ByteSink;
	#column = 0;
	#last: { value: string; fragment: Fragment } | null = null;

	constructor(sink: ByteSink) {
		this.#sink = sink;
	}

	/** Encodes a repeated value, such as the start of all links, only once. */
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

/** True if no character needs encoding, no blank is at the end, and the start is not special. */
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
