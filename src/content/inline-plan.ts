/**
 * Which style rules can move into style attributes, and which must stay: rules for some screens only, for states of a
 * link, for pseudo-elements, and others that only the mail program can decide.
 */
import { Parser } from 'htmlparser2';
import { type Inlined, inlinedRule, keepWinning } from './css-cascade.js';
import { type CssStatement, cssStatements, declarationsOf, formatStatement } from './css-statements.js';

export interface InlinePlan {
	/** The document; its style elements keep only rules that stay, and are removed when empty. */
	readonly html: string;
	/** The rules that move, in the order of the document. */
	readonly css: string;
}

/** Null when nothing can move. Style elements with conditions of their own (`media="print"`) are left alone. */
export function planInlining(html: string): InlinePlan | null {
	const isBodyImplied = hasImpliedBodies(html);
	const sheets = styleElements(html).map((element) => ({
		...element,
		statements: cssStatements(html.slice(element.start, element.end)).flatMap((statement) =>
			divided(statement, isBodyImplied),
		),
	}));
	const all = sheets.flatMap(({ statements }) => statements);
	if (!all.some(({ moves }) => moves)) return null;
	const orders = new Map(all.map((part, index) => [part, index]));
	const inlined = all.flatMap((part, order) => inlinedBy(part, order));
	let written = '';
	let from = 0;
	for (const { outerStart, start, outerEnd, statements } of sheets) {
		const kept = statements
			.filter(({ moves }) => !moves)
			.map((part) => keepWinning(part.statement, orders.get(part) ?? 0, inlined));
		written += html.slice(from, outerStart);
		if (kept.length > 0) written += `${html.slice(outerStart, start)}\n${kept.join('\n')}\n</style>`;
		from = outerEnd;
	}
	const css = all.filter(({ moves }) => moves).map(({ statement }) => formatStatement(statement));
	return { html: written + html.slice(from), css: css.join('\n') };
}

/** A statement, or those of its selectors that are handled alike. */
interface Part {
	statement: CssStatement;
	moves: boolean;
}

function divided(statement: CssStatement, isBodyImplied: boolean): Part[] {
	if (statement.kind === 'at' || declarationsOf(statement.body) === null)
		return [{ statement, moves: false }];
	const moving = statement.selectors.filter((selector) => canMove(selector, isBodyImplied));
	const staying = statement.selectors.filter((selector) => !moving.includes(selector));
	return [
		...(moving.length > 0 ? [{ statement: { ...statement, selectors: moving }, moves: true }] : []),
		...(staying.length > 0 ? [{ statement: { ...statement, selectors: staying }, moves: false }] : []),
	];
}

/** Pseudo-classes that depend on the document alone. */
const structural = /^:(root|empty|not|(first|last|only)-(child|of-type)|nth-(last-)?(child|of-type))$/i;

function canMove(selector: string, isBodyImplied: boolean): boolean {
	// The inliner takes a comma or a combinator in a string for one.
	if (/("|')[^"']*[,>+~{}()[\]]/.test(selector)) return false;
	const text = selector.replace(/"[^"]*"|'[^']*'/g, '""');
	if ((text.match(/::?[\w-]+/g) ?? []).some((pseudo) => !structural.test(pseudo))) return false;
	// The inliner knows only written elements, while a browser puts rows without a tbody into one.
	return !(isBodyImplied && /\btbody\b|>\s*tr\b/i.test(text));
}

function hasImpliedBodies(html: string): boolean {
	return (html.match(/<table\b/gi)?.length ?? 0) > (html.match(/<tbody\b/gi)?.length ?? 0);
}

function inlinedBy({ statement, moves }: Part, order: number): Inlined[] {
	if (!moves || statement.kind === 'at') return [];
	const declarations = declarationsOf(statement.body) ?? [];
	return statement.selectors.map((selector) => inlinedRule(selector, order, declarations));
}

interface StyleElement {
	outerStart: number;
	/** The text between the tags. */
	start: number;
	end: number;
	outerEnd: number;
}

/** The style elements for every screen, by position. */
function styleElements(html: string): StyleElement[] {
	const found: StyleElement[] = [];
	let open: { outerStart: number; start: number } | null = null;
	const parser = new Parser({
		onopentag(name, { media = '', type = '' }) {
			if (name !== 'style' || !/^\s*(all\s*)?$/i.test(media) || !/^\s*(text\/css\s*)?$/i.test(type)) return;
			open = { outerStart: parser.startIndex, start: parser.endIndex + 1 };
		},
		onclosetag(name, isImplied) {
			if (name !== 'style' || open === null) return;
			found.push({
				...open,
				end: isImplied ? html.length : parser.startIndex,
				outerEnd: isImplied ? html.length : parser.endIndex + 1,
			});
			open = null;
		},
	});
	parser.end(html);
	return found;
}
