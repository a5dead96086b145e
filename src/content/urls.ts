/** Which variables of an HTML text decide where a link leads, and whether a value may. */
import { type Attribute, type Piece, piecesOf, readMarkup } from './attributes.js';

/**
 * The URL attribute that a variable opens: what is written before it (never more than could begin a scheme) and
 * what follows, entities decoded, other variables by name.
 */
export interface UrlGuard {
	readonly before: string;
	readonly after: readonly (string | { readonly name: string })[];
}

const urlAttributes = new Set(
	(
		'action archive background cite classid codebase data dynsrc formaction href icon imagesrcset itemtype longdesc ' +
		'lowsrc manifest ping poster profile src srcset usemap xlink:href xml:base'
	).split(' '),
);
const allowedScheme = /^(https?|mailto|tel)$/i;
const schemeEnd = /[:/?#\\]/;

/**
 * True when the attribute stays a relative reference or becomes http, https, mailto or tel. The whole attribute is
 * looked at, not the value alone: `#a##b#` with `java` and `script:` is a script too, and `#scheme#://x` is not.
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
		else url += Object.hasOwn(variables, piece.name) ? variables[piece.name] : `#${piece.name}#`;
	}
	return hasSafeScheme(url);
}

/** Reads a URL as browsers do: blanks and controls before it do not count, nor tabs and line breaks inside. */
export function hasSafeScheme(url: string): boolean {
	const read = url.replace(/^[\x00-\x20]+/, '').replace(/[\t\r\n]/g, '');
	const end = read.search(schemeEnd);
	// RFC 3986 s.4.2: a relative reference has no colon in its first segment.
	return end === -1 || read[end] !== ':' || allowedScheme.test(read.slice(0, end));
}

/** The guards of a document, by the offset of the opening hash of the variable they watch. */
export function urlGuards(html: string): Map<number, UrlGuard> {
	const guards = new Map<number, UrlGuard>();
	for (const attribute of attributesWithVariables(html)) {
		if (!urlAttributes.has(attribute.name)) continue;
		const pieces = piecesOf(attribute);
		const first = pieces.findIndex((piece) => 'name' in piece);
		const opening = pieces[first];
		if (opening === undefined || !('name' in opening)) continue;
		const before = pieces.slice(0, first).map(pieceText).join('');
		if (schemeEnd.test(before)) continue;
		const after = pieces.slice(first + 1).map((piece) => ('name' in piece ? piece : piece.text));
		guards.set(opening.offset, { before, after });
	}
	return guards;
}

/**
 * Puts quotes around attribute values that hold a variable and have none: `<a href=#url#>` would let a value with
 * a space add attributes of its own, and an empty one swallow the next attribute.
 */
export function quoteAttributes(html: string): string {
	let quoted = '';
	let from = 0;
	for (const { isQuoted, start, end } of attributesWithVariables(html)) {
		if (isQuoted) continue;
		quoted += `${html.slice(from, start)}"${html.slice(start, end).replaceAll('"', '&quot;')}"`;
		from = end;
	}
	return from === 0 ? html : quoted + html.slice(from);
}

function pieceText(piece: Piece): string {
	return 'name' in piece ? '' : piece.text;
}

/** The attributes whose written value has two hashes or more: only they may hold a variable. */
function attributesWithVariables(html: string): readonly Attribute[] {
	return readMarkup(html, (_tag, _name, value) => value.indexOf('#') !== value.lastIndexOf('#')).attributes;
}
