/** Quotes words for a shell, and suggests known words for an unknown one. */
import { suggest } from '../../api/suggest.js';

export function shellWord(text: string): string {
	// zsh expands a word that begins with `=` to the path of a command.
	if (/^[\w@.,:/+%-][\w@.,:/+=%-]*$/.test(text)) return text;
	if (!/\p{Cc}/u.test(text)) return `'${text.replaceAll("'", "'\\''")}'`;
	// Output must not contain control characters, so let the shell (bash, zsh) create them.
	const escaped = text.replace(/['\\]/g, '\\$&').replaceAll('\n', '\\n');
	return `$'${escaped.replace(/\p{Cc}/gu, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)}'`;
}

/** `did you mean a or 'b c'?`, or undefined. Quotes a name with spaces, which could look like a command. */
export function didYouMean(word: string, candidates: readonly string[]): string | undefined {
	const near = [...new Set(suggest(word, candidates))];
	const names = near.map((name) => (/\s/.test(name) ? shellWord(name) : name));
	return names.length === 0 ? undefined : `did you mean ${names.join(' or ')}?`;
}

/** False for an empty or missing value, `0`, `false`, `no` and `off`. */
export function isOn(value: string | undefined): boolean {
	return value !== undefined && !/^(|0|false|no|off)$/i.test(value);
}
