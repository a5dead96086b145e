/** Whether a URL that variables make is one that a mail may lead to. */
import { variableValue } from '../api/variables.js';

/**
 * The URL attribute that a variable begins: the text before it (at most the beginning of a scheme) and after it,
 * entities decoded, other variables by reference.
 */
export interface UrlGuard {
	readonly before: string;
	readonly after: readonly (string | { readonly reference: string })[];
}

const allowedScheme = /^(https?|mailto|tel)$/i;
/** What ends a scheme, or shows that there is none. */
export const schemeEnd = /[:/?#\\]/;

/**
 * Whether the attribute stays a relative reference or becomes http, https, mailto or tel. The whole attribute is
 * checked, not the value alone: `#a##b#` with `java` and `script:` is a script too, and `#scheme#://x` is not.
 */
export function opensSafely(
	guard: UrlGuard,
	value: string,
	variables: Readonly<Record<string, string>>,
): boolean {
	let url = guard.before + value;
	for (const piece of guard.after) {
		if (schemeEnd.test(url)) break;
		if (typeof piece === 'string') url += piece;
		else url += variableValue(piece.reference, variables) ?? `#${piece.reference}#`;
	}
	return hasSafeScheme(url);
}

/** Reads a URL as browsers do: blanks and controls before it are ignored, as are tabs and line breaks inside. */
export function hasSafeScheme(url: string): boolean {
	const read = url.replace(/^[\x00-\x20]+/, '').replace(/[\t\r\n]/g, '');
	const end = read.search(schemeEnd);
	// RFC 3986 s.4.2: a relative reference has no colon in its first segment.
	return end === -1 || read[end] !== ':' || allowedScheme.test(read.slice(0, end));
}
