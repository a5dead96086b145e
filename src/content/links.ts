/** Sent mails identify a link by its position, so the same HTML must always give the same positions. */

import { canParseUrl } from '../api/schema/url.js';
import { variableName, variableValue } from '../api/variables.js';
import { type Piece, piecesOf, readMarkup } from './attributes.js';
import type { Variables } from './fill-variables.js';
import { encodedIn, percentEncoded } from './safe-values.js';

type LinkTarget = readonly (string | Reference)[];

interface Reference {
	readonly reference: string;
	readonly isEncoded?: true;
}

export interface Link {
	readonly start: number;
	readonly end: number;
	readonly target: LinkTarget;
	readonly depends: 'constant' | 'clean' | 'whole';
}

/** The token of a click stores the position of the link in two bytes. */
export const maxLinks = 65_536;

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

/** Null if the URL is not http(s), or a value has a control character. The URL becomes a Location header. */
export function targetUrl(target: LinkTarget, variables: Variables): string | null {
	if (!hasCleanValues(target, variables)) return null;
	const text = target
		.map((piece) => (typeof piece === 'string' ? piece : valueIn(piece, variables)))
		.join('');
	if (!canParseUrl(text)) return null;
	const url = new URL(text);
	return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : null;
}

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

const ownPages: ReadonlySet<string> = new Set(['unsubscribe_url', 'view_url']);

/** Null for targets that are never tracked: other schemes, relative references, mailctl's own pages. */
function dependence(target: LinkTarget): Link['depends'] | null {
	const [first, ...rest] = target;
	if (first === undefined) return null;
	if (typeof first !== 'string')
		return rest.length === 0 && ownPages.has(variableName(first.reference)) ? null : 'whole';
	if (rest.length === 0) return targetUrl(target, {}) === null ? null : 'constant';
	const scheme = /^([^:/?#\\]*)([:/?#\\]?)/.exec(first);
	if (scheme?.[2] === '') return 'whole';
	if (scheme?.[2] !== ':' || !/^https?$/i.test(scheme[1] ?? '')) return null;
	// After a complete host, no value can make the URL invalid.
	const host = /^https?:\/\/[^/?#\\]+[/?#\\]/i.exec(first)?.[0];
	return host !== undefined && canParseUrl(host) ? 'clean' : 'whole';
}

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

/** Avoids a regular expression, which would take quadratic time on long runs of blanks. */
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

function valueIn({ reference, isEncoded }: Reference, variables: Variables): string {
	const value = variableValue(reference, variables);
	if (value === null) return `#${reference}#`;
	return isEncoded ? percentEncoded(value) : value;
}

/** Reduces HTML to its links, so that clicks still work after the body is deleted. Null if it has no links. */
export function onlyLinks(html: string): string | null {
	const links = findLinks(html);
	if (links.length === 0) return null;
	const short = links
		.map(({ start, end }) => `<a href="${html.slice(start, end).replaceAll('"', '&quot;')}"></a>`)
		.join('');
	return linkTexts(short).join('\n') === linkTexts(html).join('\n') ? short : html;
}

export function linkTexts(html: string): string[] {
	return findLinks(html).map(({ target }) =>
		target.map((piece) => (typeof piece === 'string' ? piece : `#${piece.reference}#`)).join(''),
	);
}
