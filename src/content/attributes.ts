/** The attributes of an HTML text by their positions, found with a tokenizer: nothing is parsed into a tree, nothing rewritten. */
import { QuoteType, Tokenizer, type TokenizerCallbacks } from 'htmlparser2';
import { variablePattern } from './variable-names.js';

/** A run of an attribute's value: as written at `offset`, or a decoded entity (`offset` null). */
export interface Segment {
	readonly text: string;
	readonly offset: number | null;
}

/** An attribute with a value; `start` and `end` are offsets of the value without its quotes. */
export interface Attribute {
	/** Lower case, as is `name`. */
	readonly tag: string;
	readonly name: string;
	/** Of several attributes of one name in a tag only the first counts; the others are repeated. */
	readonly isRepeated: boolean;
	readonly isQuoted: boolean;
	readonly start: number;
	readonly end: number;
	readonly segments: readonly Segment[];
}

/** A run of a decoded value: a text, or a variable whose opening hash stands at `offset`. */
export type Piece = { readonly text: string } | { readonly name: string; readonly offset: number };

/** What is of interest in an HTML text. */
export interface Markup {
	readonly attributes: readonly Attribute[];
	/** Offset of the last `</body`; null when there is none. */
	readonly bodyEnd: number | null;
}

/**
 * Reads an HTML text as browsers do: what stands in comments, script, style, title and textarea is no markup, end tags
 * have no attributes. `isWanted` decides by tag, name and the value as written which attributes are given back.
 */
export function readMarkup(
	html: string,
	isWanted: (tag: string, name: string, value: string) => boolean,
): Markup {
	const attributes: Attribute[] = [];
	let bodyEnd: number | null = null;
	let tag = '';
	let name = '';
	let nameEnd = 0;
	let names = new Set<string>();
	let segments: Segment[] = [];
	const callbacks: TokenizerCallbacks = {
		...ignoreAll,
		onopentagname(start, end) {
			tag = html.slice(start, end).toLowerCase();
			names = new Set();
		},
		onclosetag(start, end) {
			if (html.slice(start, end).toLowerCase() === 'body') bodyEnd = start - '</'.length;
		},
		onattribname(start, end) {
			name = html.slice(start, end).toLowerCase();
			nameEnd = end;
			segments = [];
		},
		onattribdata(start, end) {
			segments.push({ text: html.slice(start, end), offset: start });
		},
		onattribentity(codepoint) {
			segments.push({ text: String.fromCodePoint(codepoint), offset: null });
		},
		onattribend(quote, closing) {
			const isRepeated = names.has(name);
			names.add(name);
			if (quote === QuoteType.NoValue) return;
			const isQuoted = quote !== QuoteType.Unquoted;
			const start = valueStart(html, nameEnd, isQuoted);
			const end = isQuoted ? closing - 1 : closing;
			if (isWanted(tag, name, html.slice(start, end))) {
				attributes.push({ tag, name, isRepeated, isQuoted, start, end, segments });
			}
		},
	};
	const tokenizer = new Tokenizer({ decodeEntities: true }, callbacks);
	tokenizer.write(html);
	tokenizer.end();
	return { attributes, bodyEnd };
}

/** The decoded value, cut at its variables. A hash that is written as an entity begins none. */
export function piecesOf({ segments }: Pick<Attribute, 'segments'>): Piece[] {
	return segments.flatMap(({ text, offset }): Piece[] => {
		if (offset === null) return [{ text }];
		const pieces: Piece[] = [];
		let from = 0;
		for (const match of text.matchAll(variablePattern())) {
			if (match.index > from) pieces.push({ text: text.slice(from, match.index) });
			pieces.push({ name: match[1] ?? '', offset: offset + match.index });
			from = match.index + match[0].length;
		}
		if (from < text.length) pieces.push({ text: text.slice(from) });
		return pieces;
	});
}

/** The tokenizer says where runs of a value are, but not where one begins that opens with an entity. */
function valueStart(html: string, nameEnd: number, isQuoted: boolean): number {
	const equals = /[ \t\r\n\f]*=[ \t\r\n\f]*/y;
	equals.lastIndex = nameEnd;
	equals.exec(html);
	return equals.lastIndex + (isQuoted ? 1 : 0);
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
