/**
 * Where a message is written, in octets from the start: laying pieces side by side as text and turning the whole into
 * octets cost half the time of a message, and most of its garbage.
 */

/** Below this a loop is faster than a call out of JavaScript. */
const shortLength = 96;

/** Collects ASCII. One sink serves one message after the other. */
export class ByteSink {
	#bytes = Buffer.allocUnsafeSlow(4096);
	#length = 0;

	/** ASCII only: what is beyond is cut to its lowest eight bits. */
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

	/** Ends the line, unless it has ended. */
	endLine(): void {
		if (this.#bytes[this.#length - 1] !== 0x0a || this.#length === 0) this.text('\r\n');
	}

	/** A copy of what was collected; the sink is empty again. */
	take(): Buffer {
		const taken = Buffer.from(this.#bytes.subarray(0, this.#length));
		this.#length = 0;
		return taken;
	}

	/** Forgets what was collected, after a message that could not be written. */
	clear(): void {
		this.#length = 0;
	}

	#reserve(more: number): void {
		const needed = this.#length + more;
		if (needed <= this.#bytes.length) return;
		const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
		larger.set(this.#bytes.subarray(0, this.#length));
		this.#bytes = larger;
	}
}
