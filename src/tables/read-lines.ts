import { byMark } from './encoding.js';
import { maxRowBytes } from './finding.js';
import { blockBytes, endOfLine, inBlocks } from './parse-block.js';

export interface Line {
	line: number;
	bytes: Buffer;
	length: number;
	isCut: boolean;
}

/**
 * Lines end in LF, CR LF or CR. Omits blank lines but counts them in line numbers. Omits the byte order marks that
 * joined files contain.
 */
export function readLines(
	source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Line, void, undefined> {
	const splitter = new LineSplitter();
	return inBlocks(source, (bytes, isLast) => splitter.split(bytes, isLast));
}

class LineSplitter {
	#line = 1;
	#cut: { bytes: Buffer; length: number } | null = null;

	*split(bytes: Buffer, isLast: boolean): Generator<Line, Buffer> {
		let start = 0;
		for (let end = endOfLine(bytes, 0, isLast); end !== -1; end = endOfLine(bytes, start, isLast)) {
			yield* this.#give(bytes.subarray(start, withoutLineEnd(bytes, start, end)));
			start = end;
		}
		const rest = bytes.subarray(start);
		if (!isLast) return rest.length > maxRowBytes ? this.#passOver(rest) : rest;
		if (rest.length > 0 || this.#cut !== null) yield* this.#give(rest);
		return rest;
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

	/** Keeps only the start of a line that is too long. Leaves a last CR, because its LF may come with the next block. */
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
