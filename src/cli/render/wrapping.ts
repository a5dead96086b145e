export interface Room {
	readonly isTTY: boolean;
	readonly columns: number;
}

/**
 * Wraps each line, but keeps commands whole, so that users can copy them. If `commands` is empty, finds the commands in
 * the text.
 */
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

/** Wraps the lines of help texts, and keeps their columns and examples. */
export async function fitLines(text: string, width: number): Promise<string> {
	const lines = text.split('\n');
	if (lines.every((line) => line.length <= width)) return text;
	const { hanging, wrapWords } = await import('./width.js');
	const fitted = lines.flatMap((line) => {
		if (line.length <= width || /^\s+mailctl /.test(line)) return [line];
		const [, start, rest = ''] = /^(\s*\S.*?\s{2,})(\S.*)$/.exec(line) ?? [];
		return start === undefined ? wrapWords(line, width) : hanging(start, rest, width + 1);
	});
	return fitted.join('\n');
}

const filled = 80;

export function refitLines(text: string, width: number): Promise<string> {
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
