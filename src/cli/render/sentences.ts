/** Sentences for people: on a terminal a line ends between two words, elsewhere sentences stay as they are. */

/** Where they go. */
export interface Room {
	readonly isTTY: boolean;
	/** Cells of a line. */
	readonly columns: number;
}

/**
 * Each line of the text by itself. A line that ends in a command stays whole: it is there to be copied. Commands that are
 * told stay whole within a sentence too; else their ends are guessed.
 */
export async function fitSentences(
	text: string,
	{ isTTY, columns }: Room,
	commands: readonly string[] = [],
): Promise<string> {
	const lines = text.split('\n');
	// The usual case, without the measurement of graphemes, which takes a while to load.
	if (!isTTY || lines.every((line) => line.length * 2 < columns || isShortAscii(line, columns))) return text;
	const { wrapWords } = await import('./width.js');
	return lines
		.flatMap((line) => (endsInCommand(line, commands) ? [line] : wrapWords(line, columns - 1, commands)))
		.join('\n');
}

function endsInCommand(line: string, commands: readonly string[]): boolean {
	if (commands.length === 0) return /(?<=^|: )mailctl /.test(line);
	return commands.some(
		(command) => line.endsWith(command) && /(?:^|: )$/.test(line.slice(0, -command.length)),
	);
}

function isShortAscii(line: string, columns: number): boolean {
	return line.length < columns && /^[\x20-\x7e]*$/.test(line);
}
