/** A line at the bottom of a terminal that is rewritten in place, with all other output above it. */
import type { OutStream } from '../frame/io.js';

/** stderr, with room for one such line. */
export interface StatusLine extends OutStream {
	/** False: no terminal, or one that rewrites no line. */
	readonly canRewrite: boolean;
	/** Shows the line, cut to the width, in place of the one before; null removes it. Only where `canRewrite`. */
	stand(line: string | null): void;
	/** The same for a line that stands where there is no other. */
	wait(line: string | null): void;
	/** When something was last written or shown here, by `elapsedMs`. */
	saidAt(): number;
	/** Takes the line away for good: what is still waited for is told no more. */
	close(): void;
	/** The other stream of the terminal: what it writes takes a line that waits away. */
	beside(stream: OutStream): OutStream;
}

const toStart = '\r\x1b[K';

/** The stream: a write, of whole lines, takes the line away and puts it back below the text. */
export function withStatusLine(
	stream: OutStream,
	{
		isDumb = false,
		elapsedMs = () => performance.now(),
	}: { isDumb?: boolean; elapsedMs?: () => number } = {},
): StatusLine {
	let standing: string | null = null;
	let waiting: string | null = null;
	let shown: string | null = null;
	let saidAt = Number.NEGATIVE_INFINITY;
	let isClosed = false;
	const show = () => {
		if (isClosed) return;
		const before = shown;
		// Our own words: a unit is a cell, and measuring graphemes is not loaded for them.
		shown = (standing ?? waiting)?.slice(0, stream.columns - 1) ?? null;
		if (before !== null || shown !== null) void stream.write(`${toStart}${shown ?? ''}`);
	};
	const wait = (line: string | null) => {
		waiting = line;
		if (standing === null) show();
	};
	const write: OutStream['write'] = (text) => {
		saidAt = elapsedMs();
		if (shown === null) return stream.write(text);
		void stream.write(toStart);
		const written = stream.write(text);
		void stream.write(shown);
		return written;
	};
	return Object.assign(writingTo(stream, write), {
		canRewrite: stream.isTTY && !isDumb,
		stand: (line: string | null) => {
			saidAt = elapsedMs();
			standing = line;
			show();
		},
		wait,
		saidAt: () => saidAt,
		close: () => {
			standing = null;
			waiting = null;
			show();
			isClosed = true;
		},
		beside: (other: OutStream) =>
			writingTo(other, (text) => {
				saidAt = elapsedMs();
				if (waiting !== null) wait(null);
				return other.write(text);
			}),
	});
}

/** The same stream with another way to write. */
function writingTo(stream: OutStream, write: OutStream['write']): OutStream {
	return {
		raw: stream.raw,
		isTTY: stream.isTTY,
		// A terminal may be resized meanwhile.
		get columns() {
			return stream.columns;
		},
		write,
	};
}
