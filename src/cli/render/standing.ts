/** A line at the bottom of a terminal that is rewritten in place, with all other output above it. */
import type { OutStream } from '../frame/io.js';

/** stderr, with room for one such line. */
export interface OneLine extends OutStream {
	/** Shows the line, cut to the width, in place of the one before; null removes it. For terminals alone. */
	stand(line: string | null): void;
}

const toStart = '\r\x1b[K';

/** The stream: a write, of whole lines, takes the line away and puts it back below the text. */
export function withOneLine(stream: OutStream): OneLine {
	let standing: string | null = null;
	return {
		raw: stream.raw,
		isTTY: stream.isTTY,
		// A terminal may be resized meanwhile.
		get columns() {
			return stream.columns;
		},
		write(text) {
			if (standing === null) return stream.write(text);
			void stream.write(toStart);
			const written = stream.write(text);
			void stream.write(standing);
			return written;
		},
		stand(line) {
			const before = standing;
			// Our own words: a unit is a cell, and measuring graphemes is not loaded for them.
			standing = line?.slice(0, stream.columns - 1) ?? null;
			if (before !== null || standing !== null) void stream.write(`${toStart}${standing ?? ''}`);
		},
	};
}
