import type { OutStream } from '../frame/io.js';
import { rowsOf } from './terminal.js';
import { widthOf } from './width.js';

/** Rows kept free below the view: the status line, and one for `^C`. */
const rowsBelow = 2;

export function createRedraw(stream: OutStream) {
	let drawn: readonly string[] = [];
	const toItsStart = () => {
		const rows = drawn.reduce((sum, line) => sum + rowsFor(line, stream.columns), 0);
		return rows === 0 ? '' : `\x1b[${rows}A\r\x1b[J`;
	};
	return {
		async draw(text: string) {
			const back = toItsStart();
			drawn = fitting(text, stream);
			// Write once, as a synchronized update if the terminal supports it, so that nobody sees half a view.
			await stream.write(`\x1b[?2026h${back}${drawn.map((line) => `${line}\n`).join('')}\x1b[?2026l`);
		},
		async clear() {
			const back = toItsStart();
			drawn = [];
			if (back !== '') await stream.write(back);
		},
	};
}

function fitting(text: string, stream: OutStream): readonly string[] {
	const lines = text.split('\n');
	if (lines.at(-1) === '') lines.pop();
	const room = (rowsOf(stream) || Number.POSITIVE_INFINITY) - rowsBelow;
	let used = 0;
	const end = lines.findIndex((line) => {
		used += rowsFor(line, stream.columns);
		return used > room;
	});
	if (end === -1) return lines;
	const shown = lines.slice(0, Math.max(0, end - 1));
	return [...shown, `(${lines.length - shown.length} more lines)`];
}

function rowsFor(line: string, columns: number): number {
	return Math.max(1, Math.ceil(widthOf(line) / columns));
}
