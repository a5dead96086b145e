import { suggest } from '../../api/suggest.js';

export function shellWord(text: string): string {
	// zsh expands a word that begins with `=` to the path of a command.
	if (/^[\w@.,:/+%-][\w@.,:/+=%-]*$/.test(text)) return text;
	if (!/\p{Cc}/u.test(text)) return `'${text.replaceAll("'", "'\\''")}'`;
	// Output must not contain control characters. `$'…'` lets bash and zsh create them.
	const escaped = text.replace(/['\\]/g, '\\$&').replaceAll('\n', '\\n');
	return `$'${escaped.replace(/\p{Cc}/gu, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)}'`;
}

/** Quotes a name with spaces, because such a name could look like a command. */
export function didYouMean(word: string, candidates: readonly string[]): string | undefined {
	const near = [...new Set(suggest(word, candidates))];
	const names = near.map((name) => (/\s/.test(name) ? shellWord(name) : name));
	return names.length === 0 ? undefined : `did you mean ${names.join(' or ')}?`;
}

export function isOn(value: string | undefined): boolean {
	return value !== undefined && !/^(|0|false|no|off)$/i.test(value);
}
