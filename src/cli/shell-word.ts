/** One word of a command line that a person may paste. */

/** The text as a POSIX shell takes it: as it is where nothing in it is special, else in single quotes. */
export function shellWord(text: string): string {
	if (/^[\w@.,:/+=%-]+$/.test(text)) return text;
	if (unseen.test(text))
		return `$'${text.replaceAll(/['\\]/g, '\\$&').replaceAll(new RegExp(unseen, 'gu'), spelled)}'`;
	return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Controls, and marks without a width: whoever pastes must see them, and a terminal must not obey them. */
const unseen = /[\p{Cc}\p{Cf}\u2028\u2029]/u;

/** As bash, zsh and ksh read it between `$'` and `'`. */
function spelled(mark: string): string {
	const code = mark.codePointAt(0) ?? 0;
	return code < 0x80
		? `\\x${code.toString(16).padStart(2, '0')}`
		: `\\U${code.toString(16).padStart(8, '0')}`;
}
