/**
 * The links of an HTML text whose clicks can be counted. Each has a position, counted from 0 in the order of the text
 * as its author wrote it. A link in a mail contains only its message and this number, so the same text must give the
 * same positions for ever.
 */

import { canParseUrl } from '../api/schema/url.js';
import { variableName, variableValue } from '../api/variables.js';
import { type Piece, piecesOf, readMarkup } from './attributes.js';
import type { Variables } from './fill-variables.js';
import { encodedIn, percentEncoded } from './urls.js';

/** The target of a link: its parts as a browser reads them, entities decoded, variables by reference. */
type LinkTarget = readonly (string | Reference)[];

interface Reference {
	readonly reference: string;
	/** Its value is percent-encoded; absent: it stands as it is. */
	readonly isEncoded?: true;
}

/** A link and the offsets of its `href` value, quotes not included. */
export interface Link {
	readonly start: number;
	readonly end: number;
	readonly target: LinkTarget;
	/**
	 * What depends on the values of its variables: nothing, only whether they are clean, or whether it is http(s) at all.
	 */
	readonly depends: 'constant' | 'clean' | 'whole';
}

/** A link has two bytes for its position. */
export const maxLinks = 65_536;

/** The links whose target is http or https, or may become so with its variables filled in. */
export function findLinks(html: string): Link[] {
	const { attributes } = readMarkup(html, (tag, name) => name === 'href' && (tag === 'a' || tag === 'area'));
	return attributes
		.filter(({ isRepeated }) => !isRepeated)
		.flatMap((attribute): Link[] => {
			const target = cleanTarget(piecesOf(attribute));
			const depends = dependence(target);
			return depends === null ? [] : [{ start: attribute.start, end: attribute.end, target, depends }];
		})
		.slice(0, maxLinks);
}

/**
 * The absolute URL of a link with these values, in the form that a browser requests: ASCII, no blanks. Null unless it
 * is http or https. A value with a control character makes it null too: no header may contain one.
 */
export function targetUrl(target: LinkTarget, variables: Variables): string | null {
	if (!hasCleanValues(target, variables)) return null;
	const text = target
		.map((piece) => (typeof piece === 'string' ? piece : valueIn(piece, variables)))
		.join('');
	if (!canParseUrl(text)) return null;
	const url = new URL(text);
	return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : null;
}

/** Whether clicks on the link can be counted: exactly when `targetUrl` gives a URL. */
export function isTrackable(
	{ depends, target }: Pick<Link, 'depends' | 'target'>,
	variables: Variables,
): boolean {
	switch (depends) {
		case 'constant':
			return true;
		case 'clean':
			return hasCleanValues(target, variables);
		case 'whole':
			return targetUrl(target, variables) !== null;
	}
}

/** A message's own pages: a click on them is an event of its own kind, or none. */
export const ownPages: ReadonlySet<string> = new Set(['unsubscribe_url', 'view_url']);

/** Null for a target that is never a link: another scheme, a relative reference, an own page. */
function dependence(target: LinkTarget): Link['depends'] | null {
	const [first, ...rest] = target;
	if (first === undefined) return null;
	if (typeof first !== 'string')
		return rest.length === 0 && ownPages.has(variableName(first.reference)) ? null : 'whole';
	if (rest.length === 0) return targetUrl(target, {}) === null ? null : 'constant';
	const scheme = /^([^:/?#\\]*)([:/?#\\]?)/.exec(first);
	if (scheme?.[2] === '') return 'whole';
	if (scheme?.[2] !== ':' || !/^https?$/i.test(scheme[1] ?? '')) return null;
	// With a complete host, no following text can make the URL invalid.
	const host = /^https?:\/\/[^/?#\\]+[/?#\\]/i.exec(first)?.[0];
	return host !== undefined && canParseUrl(host) ? 'clean' : 'whole';
}

/** Reads a URL as browsers do: blanks and controls around it are ignored, as are tabs and line breaks inside. */
function cleanTarget(pieces: readonly Piece[]): LinkTarget {
	const joined: (string | Reference)[] = [];
	const encoded = new Set<Piece>(encodedIn(pieces));
	for (const piece of pieces) {
		const last = joined.at(-1);
		if ('reference' in piece)
			joined.push({ reference: piece.reference, ...(encoded.has(piece) && { isEncoded: true }) });
		else if (typeof last === 'string') joined[joined.length - 1] = last + piece.text;
		else joined.push(piece.text);
	}
	const lastIndex = joined.length - 1;
	return joined
		.map((piece, index) => {
			if (typeof piece !== 'string') return piece;
			let text = piece.replace(/[\t\r\n]/g, '');
			if (index === 0) text = text.replace(/^[\x00-\x20]+/, '');
			if (index === lastIndex) text = trimEnd(text);
			return text;
		})
		.filter((piece) => piece !== '');
}

/** By position: a regular expression for blanks before the end is quadratic on long runs of them. */
function trimEnd(text: string): string {
	let end = text.length;
	while (end > 0 && text.charCodeAt(end - 1) <= 0x20) end--;
	return text.slice(0, end);
}

function hasCleanValues(target: LinkTarget, variables: Variables): boolean {
	return target.every(
		(piece) => typeof piece === 'string' || !/[\x00-\x1f\x7f-\x9f]/.test(valueIn(piece, variables)),
	);
}

/** As in the mail: a variable without a value stays as it is written. */
function valueIn({ reference, isEncoded }: Reference, variables: Variables): string {
	const value = variableValue(reference, variables);
	if (value === null) return `#${reference}#`;
	return isEncoded ? percentEncoded(value) : value;
}

/** By position: entities decoded, variables as `#name#`. */
export function linkTexts(html: string): string[] {
	return findLinks(html).map(({ target }) =>
		target.map((piece) => (typeof piece === 'string' ? piece : `#${piece.reference}#`)).join(''),
	);
}
