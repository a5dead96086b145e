import stringWidth from 'string-width';

const ascii = /^[\x20-\x7e]*$/;
let segmenter: Intl.Segmenter | null = null;

export function widthOf(text: string): number {
	if (ascii.test(text)) return text.length;
	let width = 0;
	for (let start = 0; start < text.length; ) {
		letter.lastIndex = start + pieceUnits;
		const end = letter.exec(text)?.index ?? text.length;
		width += stringWidth(text.slice(start, end));
		start = end;
	}
	return width;
}

/** UTF-16 units to measure at once, because the cost of finding graphemes grows with the square of the length. */
const pieceUnits = 256;
/** Characters that start a new grapheme, so that a text can be split before them: ASCII, Cyrillic, kana, ideographs. */
const letter = /[ -~\u0400-\u0482\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff]/g;

/**
 * Cuts the middle and keeps a third after the `…`, because names, ids and subjects may differ only at their ends. With
 * few cells, keeps only the start.
 */
export function shorten(text: string, cells: number): string {
	if (widthOf(text) <= cells) return text;
	if (cells < 1) return '';
	const behind = cells < leastCut ? 0 : Math.floor((cells - 1) / 3);
	return `${split(text, cells - 1 - behind).head}…${ending(text, behind)}`;
}

const leastCut = 12;

function ending(text: string, cells: number): string {
	if (cells === 0) return '';
	const near = text.slice(-(cells * 8));
	if (ascii.test(near)) return near.slice(-cells);
	// Skip the first grapheme, because `slice` may have cut it in half.
	const pieces = [...graphemes(near)].slice(1);
	let used = 0;
	let start = near.length;
	for (const { segment, index } of pieces.reverse()) {
		used += widthOf(segment);
		if (used > cells) break;
		start = index;
	}
	return near.slice(start);
}

export function pad(text: string, cells: number, align: 'left' | 'right' = 'left'): string {
	const space = ' '.repeat(Math.max(0, cells - widthOf(text)));
	return align === 'left' ? text + space : space + text;
}

/** Wraps to lines of at most `cells`, at spaces if there are any. A grapheme wider than the line gets its own line. */
export function wrap(text: string, cells: number): string[] {
	const lines: string[] = [];
	let rest = text;
	for (;;) {
		const { head, tail } = split(rest, cells);
		if (tail === '') break;
		const space = tail.startsWith(' ') ? head.length : head.lastIndexOf(' ');
		const cut = space > 0 ? space : head.length > 0 ? head.length : firstGrapheme(rest);
		if (cut >= rest.length) break;
		lines.push(rest.slice(0, cut).trimEnd());
		rest = rest.slice(cut).trimStart();
	}
	return [...lines, rest];
}

/**
 * Wraps at spaces to lines of at most `cells`. Longer words and commands stay whole, so that users can copy them. All
 * lines have the indent of the first line.
 */
export function wrapWords(text: string, cells: number, commands: readonly string[] = []): string[] {
	const indent = /^ */.exec(text)?.[0] ?? '';
	const lines: string[] = [];
	let line = '';
	for (const word of wordsOf(text.slice(indent.length), cells, commands)) {
		const next = line === '' ? indent + word : `${line} ${word}`;
		const isLongCommand = line.endsWith(':') && word.includes(' ') && widthOf(word) > cells;
		if (line === '' || isLongCommand || widthOf(next) <= cells) line = next;
		else {
			lines.push(line.trimEnd());
			line = indent + word;
		}
	}
	return [...lines, line];
}

export function hanging(start: string, text: string, columns: number): string[] {
	const room = columns - 1 - start.length;
	if (widthOf(text) <= room) return [start + text];
	const isNarrow = room < 36;
	const margin = ' '.repeat(isNarrow ? 4 : start.length);
	const lines = wrapWords(margin + text, columns - 1);
	return isNarrow ? [start.trimEnd(), ...lines] : [start + (lines[0] ?? '').trimStart(), ...lines.slice(1)];
}

/** Matches a command up to the end of its clause, including quoted text. */
const clauses = /(?<![\w./-])mailctl (?=-|[a-z])(?:'[^']*'|"[^"]*"|[^,;.]|[,;.](?! |$))*/g;

/** Splits a text at spaces, but keeps each command whole. Cleaned text contains no NUL, so NUL can join its words. */
function wordsOf(text: string, cells: number, commands: readonly string[]): string[] {
	const glue = (command: string) => command.replaceAll(' ', '\0');
	const glued =
		commands.length === 0
			? text.replace(clauses, (clause) => (widthOf(clause) <= cells ? glue(clause) : clause))
			: commands
					.toSorted((one, other) => other.length - one.length)
					.reduce((rest, command) => rest.replaceAll(command, glue), text);
	return glued.split(' ').map((word) => word.replaceAll('\0', ' '));
}

function split(text: string, cells: number): { head: string; tail: string } {
	if (ascii.test(text.slice(0, cells + 1))) return { head: text.slice(0, cells), tail: text.slice(cells) };
	let end = 0;
	let used = 0;
	for (const { segment, index } of graphemes(text.slice(0, cells * 8 + nearUnits))) {
		used += widthOf(segment);
		if (used > cells) break;
		end = index + segment.length;
	}
	return { head: text.slice(0, end), tail: text.slice(end) };
}

/** UTF-16 units to scan for the last grapheme. Hardly any grapheme is longer. */
const nearUnits = 4_096;

function firstGrapheme(text: string): number {
	for (const { segment } of graphemes(text)) return segment.length;
	return 0;
}

function graphemes(text: string): Iterable<Intl.SegmentData> {
	segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
	return segmenter.segment(text);
}
