/** Stores texts in one buffer: threads transfer it without a copy, and the garbage collector need not scan it. */

export interface RowTexts {
	count: number;
	bytes: Uint8Array<ArrayBuffer>;
	ends: Uint32Array<ArrayBuffer>;
}

const firstBytes = 64 * 1024;
const firstCount = 1024;
const maxOctets = 3;

export function newTexts(): RowTexts {
	return { count: 0, bytes: new Uint8Array(firstBytes), ends: new Uint32Array(firstCount) };
}

export function bytesOf({ count, ends }: RowTexts): number {
	return endOf(ends, count - 1);
}

/** Replaces lone surrogates with U+FFFD. */
export class TextWriter {
	readonly #texts: RowTexts;
	#view: Buffer;
	#at: number;

	constructor(texts: RowTexts) {
		this.#texts = texts;
		this.#view = viewOf(texts);
		this.#at = bytesOf(texts);
	}

	add(text: string): void {
		const texts = this.#texts;
		if (this.#at + text.length * maxOctets > texts.bytes.length) this.#grow(text);
		if (texts.count === texts.ends.length) texts.ends = doubled(texts.ends);
		this.#at += this.#view.write(text, this.#at);
		texts.ends[texts.count] = this.#at;
		texts.count += 1;
	}

	#grow(text: string): void {
		const needed = this.#at + Buffer.byteLength(text);
		if (needed <= this.#texts.bytes.length) return;
		const bytes = new Uint8Array(Math.max(needed, this.#texts.bytes.length * 2));
		bytes.set(this.#texts.bytes);
		this.#texts.bytes = bytes;
		this.#view = viewOf(this.#texts);
	}
}

export class TextReader {
	readonly count: number;
	readonly #view: Buffer;
	readonly #ends: Uint32Array;

	constructor(texts: RowTexts) {
		this.count = texts.count;
		this.#view = viewOf(texts);
		this.#ends = texts.ends;
	}

	at(index: number): string {
		return this.#view.toString('utf8', endOf(this.#ends, index - 1), endOf(this.#ends, index));
	}

	octet(index: number, place: number): number {
		const at = endOf(this.#ends, index - 1) + place;
		return at < endOf(this.#ends, index) ? (this.#view[at] ?? 0) : 0;
	}
}

function endOf(ends: Uint32Array, index: number): number {
	return index < 0 ? 0 : (ends[index] ?? 0);
}

function viewOf({ bytes }: RowTexts): Buffer {
	return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function doubled(ends: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
	const larger = new Uint32Array(ends.length * 2);
	larger.set(ends);
	return larger;
}

/** The store does not check these rows again. Never build a `CheckedBatch` from a client's data. */
export interface CheckedBatch {
	first: number;
	variables: readonly string[];
	rows: RowTexts;
}
