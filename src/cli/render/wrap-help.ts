const leastRoom = 24;
const nearMargin = 6;

/** Every line at most `width` long where it has spaces. Commands stay whole: they are there to be copied. */
export function fitLines(text: string, width: number): string {
	return text
		.split('\n')
		.flatMap((line) => (line.length <= width || /^\s+mailctl /.test(line) ? [line] : fitLine(line, width)))
		.join('\n');
}

const filled = 80;

/** The same of a text whose paragraphs are broken for another width; a line of a command stands by itself. */
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
