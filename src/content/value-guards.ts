import { hasDefault, referencePattern } from '../api/variables.js';
import {
	type Attribute,
	type Edit,
	edited,
	type Markup,
	type Piece,
	piecesOf,
	readMarkup,
} from './attributes.js';
import { encodedIn, mayLoad, type StyleGuard, schemeEnd, styleGuards, type UrlGuard } from './safe-values.js';

export type ValueGuard = UrlGuard | StyleGuard | 'query';

const urlAttributes = new Set(
	(
		'action archive background cite classid codebase data dynsrc formaction href icon imagesrcset itemtype longdesc ' +
		'lowsrc manifest ping poster profile src srcset usemap xlink:href xml:base'
	).split(' '),
);
export function valueGuards(html: string): Map<number, ValueGuard> {
	const guards = new Map<number, ValueGuard>();
	const { attributes, styles } = markupWithVariables(html);
	for (const attribute of attributes) {
		if (attribute.name === 'srcdoc') fix(attribute, guards);
		else if (urlAttributes.has(attribute.name)) guardUrl(attribute, guards);
		else guardStyle(attribute, guards);
	}
	for (const offset of cutReferences(html, attributes)) guards.set(offset, 'fixed');
	for (const { start, end } of styles) {
		for (const [offset, guard] of styleGuards(html.slice(start, end))) guards.set(start + offset, guard);
	}
	return guards;
}

/** Finds variables that cross the end of an attribute, because their default has a blank or an apostrophe. */
function* cutReferences(html: string, attributes: readonly Attribute[]): Generator<number> {
	let next = 0;
	for (const { 0: token, 1: reference = '', index } of html.matchAll(referencePattern())) {
		if (!hasDefault(reference)) continue;
		while ((attributes[next]?.end ?? Number.POSITIVE_INFINITY) <= index) next += 1;
		const { start, end } = attributes[next] ?? { start: html.length, end: html.length };
		if (start <= index && index + token.length > end) yield index;
	}
}

export function textGuards(text: string): Map<number, ValueGuard> {
	const guards = new Map<number, ValueGuard>();
	if (!text.includes('#')) return guards;
	const word = new RegExp(`(?:${referencePattern().source}|[^\\s<>"#]+|#)+`, 'g');
	for (const { 0: found, index } of text.matchAll(word)) {
		if (!found.includes('#')) continue;
		const scheme = found.search(/(?:https?:)?\/\/|mailto:/i);
		if (scheme === -1 && !/[?&][\w.~-]+=/.test(found)) continue;
		const start = Math.max(0, scheme);
		const pieces = piecesOf({ segments: [{ text: found.slice(start), offset: index + start }] });
		for (const { offset } of encodedIn(pieces)) guards.set(offset, 'query');
	}
	return guards;
}

/** Leaves variables in `srcdoc` unfilled, because no single escaping is safe everywhere in its document. */
function fix({ segments }: Attribute, guards: Map<number, ValueGuard>): void {
	for (const { text, offset } of segments) {
		if (offset === null) continue;
		for (const { index } of text.matchAll(referencePattern())) guards.set(offset + index, 'fixed');
	}
}

function guardUrl(attribute: Attribute, guards: Map<number, ValueGuard>): void {
	const pieces = piecesOf(attribute);
	for (const { offset } of encodedIn(pieces)) guards.set(offset, 'query');
	const first = pieces.findIndex((piece) => 'reference' in piece);
	const opening = pieces[first];
	if (opening === undefined || !('reference' in opening)) return;
	const before = pieces.slice(0, first).map(pieceText).join('');
	if (schemeEnd.test(before)) return;
	const after = pieces.slice(first + 1).map((piece) => ('reference' in piece ? piece : piece.text));
	guards.set(opening.offset, { before, after });
}

function guardStyle(attribute: Attribute, guards: Map<number, ValueGuard>): void {
	const pieces = piecesOf(attribute);
	const css = pieces.map((piece) => ('reference' in piece ? `#${piece.reference}#` : piece.text)).join('');
	const isStyle = attribute.name === 'style';
	if (!isStyle && !mayLoad(css)) return;
	const known = new Map(styleGuards(css));
	let at = 0;
	for (const piece of pieces) {
		if ('reference' in piece) {
			const guard = known.get(at);
			if (guard !== undefined && (isStyle || guard === 'fixed')) guards.set(piece.offset, guard);
			at += piece.reference.length + 2;
		} else at += piece.text.length;
	}
}

/** Quotes attributes, because a value with a space would add attributes to the unquoted `<a href=#url#>`. */
export function quoteAttributes(html: string): string {
	const edits = markupWithVariables(html)
		.attributes.filter(({ isQuoted }) => !isQuoted)
		.map(({ start, end }): Edit => [start, end, `"${html.slice(start, end).replaceAll('"', '&quot;')}"`]);
	return edited(html, edits);
}

function pieceText(piece: Piece): string {
	return 'reference' in piece ? '' : piece.text;
}

function markupWithVariables(html: string): Markup {
	return readMarkup(html, (_tag, _name, value) => {
		const first = value.indexOf('#');
		return first !== value.lastIndexOf('#') || (first !== -1 && value.includes('|', first));
	});
}
