/** Which variables of an HTML text decide where a link leads, and whether a value may. */
import { QuoteType, Tokenizer, type TokenizerCallbacks } from 'htmlparser2';
import { variablePattern } from './variable-names.js';

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
	for (const { name, segments } of attributesWithVariables(html)) {
		if (!urlAttributes.has(name)) continue;
		const pieces = segments.flatMap(piecesOf);
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
	for (const { quote, start, end } of attributesWithVariables(html)) {
		if (quote !== QuoteType.Unquoted) continue;
		quoted += `${html.slice(from, start)}"${html.slice(start, end).replaceAll('"', '&quot;')}"`;
		from = end;
	}
	return from === 0 ? html : quoted + html.slice(from);
}

/** A run of an attribute's value: as written at `offset`, or a decoded entity (offset null). */
interface Segment {
	readonly text: string;
	readonly offset: number | null;
}

interface Attribute {
	readonly name: string;
	readonly quote: QuoteType;
	readonly start: number;
	readonly end: number;
	readonly segments: readonly Segment[];
}

type Piece = { readonly text: string } | { readonly name: string; readonly offset: number };

function pieceText(piece: Piece): string {
	return 'name' in piece ? '' : piece.text;
}

function piecesOf(segment: Segment): Piece[] {
	if (segment.offset === null) return [{ text: segment.text }];
	const pieces: Piece[] = [];
	let from = 0;
	for (const match of segment.text.matchAll(variablePattern())) {
		if (match.index > from) pieces.push({ text: segment.text.slice(from, match.index) });
		pieces.push({ name: match[1] ?? '', offset: segment.offset + match.index });
		from = match.index + match[0].length;
	}
	if (from < segment.text.length) pieces.push({ text: segment.text.slice(from) });
	return pieces;
}

/** The attributes whose written value has two hashes or more; positions are offsets into `html`. */
function attributesWithVariables(html: string): Attribute[] {
	const found: Attribute[] = [];
	let name = '';
	let segments: Segment[] = [];
	const callbacks: TokenizerCallbacks = {
		...ignoreAll,
		onattribname(start, end) {
			name = html.slice(start, end).toLowerCase();
			segments = [];
		},
		onattribdata(start, end) {
			segments.push({ text: html.slice(start, end), offset: start });
		},
		onattribentity(codepoint) {
			segments.push({ text: String.fromCodePoint(codepoint), offset: null });
		},
		onattribend(quote, end) {
			const start = segments.find((segment) => segment.offset !== null)?.offset;
			const value = typeof start === 'number' ? html.slice(start, end) : '';
			if (typeof start === 'number' && value.indexOf('#') !== value.lastIndexOf('#')) {
				found.push({ name, quote, start, end, segments });
			}
		},
	};
	const tokenizer = new Tokenizer({ decodeEntities: true }, callbacks);
	tokenizer.write(html);
	tokenizer.end();
	return found;
}

function ignore(): void {}

const ignoreAll: TokenizerCallbacks = {
	onattribdata: ignore,
	onattribentity: ignore,
	onattribend: ignore,
	onattribname: ignore,
	oncdata: ignore,
	onclosetag: ignore,
	oncomment: ignore,
	ondeclaration: ignore,
	onend: ignore,
	onopentagend: ignore,
	onopentagname: ignore,
	onprocessinginstruction: ignore,
	onselfclosingtag: ignore,
	ontext: ignore,
	ontextentity: ignore,
};
