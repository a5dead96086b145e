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
function hasSafeScheme(url: string): boolean {
	const read = url.replace(/^[\x00-\x20]+/, '').replace(/[\t\r\n]/g, '');
	const end = read.search(schemeEnd);
	// RFC 3986 s.4.2: a relative reference has no colon in its first segment.
	return end === -1 || read[end] !== ':' || allowedScheme.test(read.slice(0, end));
}

/**
 * The variables of a URL whose values are percent-encoded: those behind its `?`, and all of a `mailto:`. The query of a
 * URL that begins with a variable shows in `&name=` too. `pieces` is the whole URL.
 */
export function encodedIn<R extends object>(pieces: readonly ({ readonly text: string } | R)[]): R[] {
	const encoded: R[] = [];
	let literal = '';
	let isFirst = true;
	let isEncoded = false;
	for (const piece of pieces) {
		if ('text' in piece) {
			literal += piece.text;
			continue;
		}
		isEncoded ||=
			literal.includes('?') || (isFirst ? /^[\x00-\x20]*mailto:/i : /&[\w.~-]{1,100}=/).test(literal);
		if (isEncoded) encoded.push(piece);
		literal = '';
		isFirst = false;
	}
	return encoded;
}

/** RFC 3986: unreserved characters stay. Line ends are CRLF, as forms and RFC 6068 have them. */
export function percentEncoded(value: string): string {
	if (/^[\w.~-]*$/.test(value)) return value;
	const text = value.replace(/\r\n?|\n/g, '\r\n').replace(/\p{Cs}/gu, '\ufffd');
	return encodeURIComponent(text).replace(
		/[!'()*]/g,
		(mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
	);
}
