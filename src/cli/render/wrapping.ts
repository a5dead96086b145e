export interface Room {
	readonly isTTY: boolean;
	readonly columns: number;
}

/** Wraps each line separately. Keeps the given commands whole, so that they can be copied; finds others in the text. */
export async function fitSentences(
	text: string,
	{ isTTY, columns }: Room,
	commands: readonly string[] = [],
): Promise<string> {
	const lines = text.split('\n');
	const isShort = (line: string) => line.length < columns && /^[\x20-\x7e]*$/.test(line);
	if (!isTTY || lines.every((line) => line.length * 2 < columns || isShort(line))) return text;
	const { wrapWords } = await import('./width.js');
	return lines.flatMap((line) => wrapWords(line, columns - 1, commands)).join('\n');
}

const leastRoom = 24;
const nearMargin = 6;

/** Wraps lines at spaces to at most `width`. Keeps commands whole, so that they can be copied. */
export function fitLines(text: string, width: number): string {
	return text
		.split('\n')
		.flatMap((line) => (line.length <= width || /^\s+mailctl /.test(line) ? [line] : fitLine(line, width)))
		.join('\n');
}

const filled = 80;

/** Joins paragraphs that are wrapped for another width, then wraps like `fitLines`. Keeps lines with a command apart. */
export function refitLines(text: string, width: number): string {
	const lines: string[] = [];
	let isOpen = false;
	for (const line of text.split('\n')) {
		const isProse = /^\S/.test(line) && !line.startsWith('mailctl ');
		if (isOpen && isProse) lines.push(`${lines.pop()} ${line}`);
		else lines.push(line);
		isOpen = isProse && line.length > filled;
	}
	return fitLines(lines.join('\n'), width);
}

function fitLine(line: string, width: number): string[] {
	const margin = /^\s*/.exec(line)?.[0].length ?? 0;
	const column = /^\s*\S.*?\s{2,}(?=\S)/.exec(line)?.[0].length ?? margin;
	if (width - column >= leastRoom) return wrapped(line, width, column);
	const indent = Math.min(margin, nearMargin) + 2;
	const right = ' '.repeat(column === margin ? Math.min(margin, indent) : indent) + line.slice(column);
	const below = wrapped(right, width, right.length - right.trimStart().length);
	return column === margin ? below : [line.slice(0, column).trimEnd(), ...below];
}

function wrapped(line: string, width: number, indent: number): string[] {
	const lines: string[] = [];
	let rest = line;
	while (rest.length > width) {
		const space = rest.lastIndexOf(' ', width);
		if (space <= indent) break;
		lines.push(rest.slice(0, space).trimEnd());
		rest = ' '.repeat(indent) + rest.slice(space + 1);
	}
	return [...lines, rest];
}
