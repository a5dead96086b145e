/** One word of a command line that a person may paste. */

/** The text as a POSIX shell takes it: as it is where nothing in it is special, else in single quotes. */
export function shellWord(text: string): string {
	if (/^[\w@.,:/+=%-]+$/.test(text)) return text;
	return `'${text.replaceAll("'", "'\\''")}'`;
}
