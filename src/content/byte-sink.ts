/** Collects a message as bytes, because joining strings and encoding the result cost half the time of a message. */

/** For shorter texts, a loop is faster than a native call. */
const shortLength = 96;

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
