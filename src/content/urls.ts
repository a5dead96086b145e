import { variableValue } from '../api/variables.js';

export interface UrlGuard {
	readonly before: string;
	readonly after: readonly (string | { readonly reference: string })[];
}

const allowedScheme = /^(https?|mailto|tel)$/i;
export const schemeEnd = /[:/?#\\]/;

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

/** Browsers ignore blanks and controls before a URL, and tabs and line breaks inside. */
function hasSafeScheme(url: string): boolean {
	const read = url.replace(/^[\x00-\x20]+/, '').replace(/[\t\r\n]/g, '');
	const end = read.search(schemeEnd);
	// RFC 3986 s.4.2: a relative reference has no colon in its first segment.
	return end === -1 || read[end] !== ':' || allowedScheme.test(read.slice(0, end));
}

/** Variables behind a `?`, after `&name=`, and all of a `mailto:`. */
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

/** RFC 3986: unreserved characters stay. Line ends are CRLF (RFC 6068). */
export function percentEncoded(value: string): string {
	if (/^[\w.~-]*$/.test(value)) return value;
	const text = value.replace(/\r\n?|\n/g, '\r\n').replace(/\p{Cs}/gu, '\ufffd');
	return encodeURIComponent(text).replace(
		/[!'()*]/g,
		(mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
	);
}
