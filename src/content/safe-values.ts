import { referencePattern, variableValue } from '../api/variables.js';

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

/** Browsers ignore blanks and control characters before a URL, and tabs and line breaks within it. */
function hasSafeScheme(url: string): boolean {
	const read = url.replace(/^[\x00-\x20]+/, '').replace(/[\t\r\n]/g, '');
	const end = read.search(schemeEnd);
	// RFC 3986 s.4.2: a relative reference has no colon in its first segment.
	return end === -1 || read[end] !== ':' || allowedScheme.test(read.slice(0, end));
}

/** Returns the variables to percent-encode: those after a `?` or `&name=`, and all in a `mailto:`. */
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

/** Keeps unreserved characters (RFC 3986). Line ends become CRLF (RFC 6068). */
export function percentEncoded(value: string): string {
	if (/^[\w.~-]*$/.test(value)) return value;
	const text = value.replace(/\r\n?|\n/g, '\r\n').replace(/\p{Cs}/gu, '\ufffd');
	return encodeURIComponent(text).replace(
		/[!'()*]/g,
		(mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
	);
}

/** `fixed`: a variable in `url(…)` stays unfilled. `style`: `#` replaces a value that would load something. */
export type StyleGuard = 'fixed' | 'style';

const marks =
	/"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?|((?:url|src|image|image-set|-webkit-image-set|cross-fade|-webkit-cross-fade|element|expression)?\()|\)|@import\b|[;{}]/gi;

export function styleGuards(css: string): [offset: number, guard: StyleGuard][] {
	const ranges = loadingRanges(css);
	let next = 0;
	return Array.from(css.matchAll(referencePattern()), ({ index }) => {
		while ((ranges[next]?.end ?? Number.POSITIVE_INFINITY) <= index) next += 1;
		const isFixed = (ranges[next]?.start ?? Number.POSITIVE_INFINITY) <= index;
		return [index, isFixed ? 'fixed' : 'style'];
	});
}

/** True if an attribute other than `style` may load something, as `fill` and `mask` do with `url(…)`. */
export function mayLoad(value: string): boolean {
	return /url\s*\(/i.test(value);
}

/** Allows only functions for colours and numbers. Rejects at-rules, and escapes, because they can hide names. */
export function loadsNothing(value: string): boolean {
	if (!/[(\\@]/.test(value)) return true;
	if (/[\\@]/.test(value)) return false;
	const calls = value.match(/(?<![\w-])[\w-]*\(/g) ?? [];
	return calls.every((call) => /^(rgba?|hsla?|calc|min|max|clamp)\($/i.test(call));
}

interface Range {
	start: number;
	end: number;
}

function loadingRanges(css: string): Range[] {
	const ranges: Range[] = [];
	let start: number | null = null;
	let depth = 0;
	let isImport = false;
	for (const { 0: mark, 1: bracket, index } of css.matchAll(marks)) {
		if (start === null) {
			isImport = mark.toLowerCase() === '@import';
			if (isImport || (bracket?.length ?? 0) > 1) {
				start = index;
				depth = 1;
			}
		} else if (bracket !== undefined) depth += 1;
		else if (mark === ')' && !isImport) depth -= 1;
		if (start === null || !(isImport ? ';{}'.includes(mark) : depth === 0)) continue;
		ranges.push({ start, end: index + 1 });
		start = null;
	}
	if (start !== null) ranges.push({ start, end: css.length });
	return ranges;
}
