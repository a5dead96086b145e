export interface Room {
	readonly isTTY: boolean;
	readonly columns: number;
}

/** Each line of the text by itself. Commands stay whole, to be copied; the ends of those that are not told are guessed. */
export async function fitSentences(
	text: string,
	{ isTTY, columns }: Room,
	commands: readonly string[] = [],
): Promise<string> {
	const lines = text.split('\n');
	if (!isTTY || lines.every((line) => line.length * 2 < columns || isShortAscii(line, columns))) return text;
	const { wrapWords } = await import('./width.js');
	return lines.flatMap((line) => wrapWords(line, columns - 1, commands)).join('\n');
}

function isShortAscii(line: string, columns: number): boolean {
	return line.length < columns && /^[\x20-\x7e]*$/.test(line);
}
