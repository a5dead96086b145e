/** Finds attributes of HTML by position, without parsing a tree or rewriting the text. */
import { QuoteType, Tokenizer, type TokenizerCallbacks } from 'htmlparser2';
import { referencePattern } from '../api/variables.js';

interface Segment {
	readonly text: string;
	readonly offset: number | null;
}

export interface Attribute {
	readonly tag: string;
	/** Index of the tag among all tags except style elements, which inlining removes. */
	readonly tagIndex: number;
	readonly name: string;
	readonly isRepeated: boolean;
	readonly isQuoted: boolean;
	readonly start: number;
	readonly end: number;
	readonly segments: readonly Segment[];
}

export type Piece = { readonly text: string } | { readonly reference: string; readonly offset: number };

export interface Markup {
	readonly attributes: readonly Attribute[];
	readonly bodyEnd: number | null;
	readonly styles: readonly { readonly start: number; readonly end: number }[];
}

/** Skips comments, script, style, title and textarea, which contain no markup. */
export function readMarkup(
	html: string,
	isWanted: (tag: string, name: string, value: string) => boolean,
): Markup {
	const attributes: Attribute[] = [];
	const styles: { start: number; end: number }[] = [];
	let styleStart: number | null = null;
	let bodyEnd: number | null = null;
	let tag = '';
	let tagIndex = 0;
	let name = '';
	let nameEnd = 0;
	let names = new Set<string>();
	let segments: Segment[] = [];
	const callbacks: TokenizerCallbacks = {
		...ignoreAll,
		onopentagname(start, end) {
			tag = html.slice(start, end).toLowerCase();
			if (tag !== 'style') tagIndex += 1;
			names = new Set();
		},
		onopentagend(end) {
			if (tag === 'style') styleStart ??= end + 1;
		},
		onclosetag(start, end) {
			const name = html.slice(start, end).toLowerCase();
			if (name === 'body') bodyEnd = start - '</'.length;
			if (name !== 'style' || styleStart === null) return;
			styles.push({ start: styleStart, end: start - '</'.length });
			styleStart = null;
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
				attributes.push({ tag, tagIndex, name, isRepeated, isQuoted, start, end, segments });
			}
		},
	};
	const tokenizer = new Tokenizer({ decodeEntities: true }, callbacks);
	tokenizer.write(html);
	tokenizer.end();
	if (styleStart !== null) styles.push({ start: styleStart, end: html.length });
	return { attributes, bodyEnd, styles };
}

export type Edit = readonly [start: number, end: number, text: string];

export function edited(html: string, edits: readonly Edit[]): string {
	const pieces = edits.map(([start, , text], at) => html.slice(edits[at - 1]?.[1] ?? 0, start) + text);
	return edits.length === 0 ? html : pieces.join('') + html.slice(edits.at(-1)?.[1]);
}

/** A `#` that is written as an entity does not start a variable. */
export function piecesOf({ segments }: Pick<Attribute, 'segments'>): Piece[] {
	return segments.flatMap(({ text, offset }): Piece[] => {
		if (offset === null) return [{ text }];
		const pieces: Piece[] = [];
		let from = 0;
		for (const match of text.matchAll(referencePattern())) {
			if (match.index > from) pieces.push({ text: text.slice(from, match.index) });
			pieces.push({ reference: match[1] ?? '', offset: offset + match.index });
			from = match.index + match[0].length;
		}
		if (from < text.length) pieces.push({ text: text.slice(from) });
		return pieces;
	});
}

/** Searches for the start of a value, because the tokenizer does not report it if the value begins with an entity. */
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
