import { byMark } from './encoding.js';
import { maxRowBytes } from './finding.js';
import { endOfLine } from './parse-block.js';

export interface Line {
	line: number;
	bytes: Buffer;
	length: number;
	/** It is longer than a row may be: the rest was skipped. */
	isCut: boolean;
}

const blockBytes = 64 * 1024;

/** Lines end in LF, CR LF or CR; blank ones are counted and left out, and marks of joined files. */
export async function* readLines(
	source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Line, void, undefined> {
	const splitter = new LineSplitter();
	for await (const chunk of source) yield* splitter.push(chunk);
	yield* splitter.finish();
}

class LineSplitter {
	#line = 1;
	#chunks: Uint8Array[] = [];
	#pending = 0;
	/** The search for a line end waits for this many bytes; doubled with a long line, so that the time stays linear. */
	#wanted = blockBytes;
	#cut: { bytes: Buffer; length: number } | null = null;

	*push(chunk: Uint8Array): Generator<Line> {
		this.#chunks.push(chunk);
		this.#pending += chunk.length;
		if (this.#pending >= this.#wanted) yield* this.#split(false);
	}

	*finish(): Generator<Line> {
		yield* this.#split(true);
	}

	*#split(isLast: boolean): Generator<Line> {
		const bytes = Buffer.concat(this.#chunks);
		let start = 0;
		for (let end = endOfLine(bytes, 0, isLast); end !== -1; end = endOfLine(bytes, start, isLast)) {
			yield* this.#give(bytes.subarray(start, withoutLineEnd(bytes, start, end)));
			start = end;
		}
		const rest = bytes.subarray(start);
		if (isLast && (rest.length > 0 || this.#cut !== null)) yield* this.#give(rest);
		else this.#keep(rest);
	}

	*#give(given: Buffer): Generator<Line> {
		const bytes = given.subarray(byMark(given)?.encoding === 'utf-8' ? 3 : 0);
		const line = this.#line;
		this.#line += 1;
		const cut = this.#cut;
		this.#cut = null;
		if (cut !== null) yield { line, bytes: cut.bytes, length: cut.length + bytes.length, isCut: true };
		else if (!isBlank(bytes)) yield { line, bytes, length: bytes.length, isCut: bytes.length > maxRowBytes };
	}

	#keep(rest: Buffer): void {
		const kept = rest.length > maxRowBytes ? this.#passOver(rest) : rest;
		this.#chunks = kept.length === 0 ? [] : [Buffer.from(kept)];
		this.#pending = kept.length;
		this.#wanted = Math.max(blockBytes, Math.min(kept.length * 2, maxRowBytes + blockBytes));
	}

	/** A last CR stays: its LF may come with the next block. */
	#passOver(rest: Buffer): Buffer {
		const length = rest.length - (rest.at(-1) === 13 ? 1 : 0);
		this.#cut ??= { bytes: Buffer.from(rest.subarray(0, blockBytes)), length: 0 };
		this.#cut.length += length;
		return rest.subarray(length);
	}
}

function withoutLineEnd(bytes: Buffer, start: number, end: number): number {
	let at = end;
	while (at > start && (bytes[at - 1] === 10 || bytes[at - 1] === 13)) at -= 1;
	return at;
}

function isBlank(bytes: Buffer): boolean {
	return bytes.every((byte) => byte === 32 || byte === 9);
}
