/**
 * Which style rules can move into style attributes, and which must stay: rules for some screens only, for states of a
 * link, for pseudo-elements, and others that only the mail program can decide.
 */
import { Parser } from 'htmlparser2';

interface InlinePlan {
	/** The document; its style elements keep only rules that stay, and are removed when empty. */
	readonly html: string;
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
	start: number;
	end: number;
	outerEnd: number;
}

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

/** Declarations that move into style attributes. `order` counts rules, in the order of the document. */
interface Inlined {
	readonly subject: Subject;
	readonly specificity: number;
	readonly order: number;
	readonly declarations: readonly Declaration[];
}

/** What the last part of a selector says about the element; empty where it says nothing. */
interface Subject {
	readonly tag: string;
	readonly id: string;
}

function inlinedRule(selector: string, order: number, declarations: readonly Declaration[]): Inlined {
	return { subject: subjectOf(selector), specificity: specificityOf(selector), order, declarations };
}

/** At-rules whose rules count only under a condition. */
const conditions = new Set(['media', 'supports', 'container']);

/**
 * The statement with `!important` on declarations that overrode the inlined ones, and would lose. Specificity is
 * compared as if the rules applied to one element wherever their last parts allow it. A rule that overrode some inlined
 * declarations and lost to others wins under a condition (the author wanted it for those screens), but not in a state
 * of a link (`a:hover` should not repaint a button).
 */
function keepWinning(statement: CssStatement, order: number, inlined: readonly Inlined[]): string {
	return rewritten(statement, { order, inlined, isConditional: false });
}

interface Scene {
	order: number;
	inlined: readonly Inlined[];
	isConditional: boolean;
}

function rewritten(statement: CssStatement, scene: Scene): string {
	if (statement.kind === 'at') {
		if (statement.block === null || !conditions.has(statement.name)) return formatStatement(statement);
		const rules = cssStatements(statement.block).map((inner) =>
			rewritten(inner, { ...scene, isConditional: true }),
		);
		return formatStatement({ ...statement, block: `\n${rules.join('\n')}\n` });
	}
	const declarations = declarationsOf(statement.body);
	if (declarations === null) return formatStatement(statement);
	const bodies = statement.selectors.map((selector) => bodyFor(selector, declarations, scene));
	if (bodies.every((body) => body === null)) return formatStatement(statement);
	return statement.selectors
		.map((selector, index) => `${selector} {${bodies[index] ?? statement.body}}`)
		.join('\n');
}

/** Null when nothing has to change. */
function bodyFor(selector: string, declarations: readonly Declaration[], scene: Scene): string | null {
	// The box of a pseudo-element belongs to no other rule.
	if (/::|:(before|after|first-line|first-letter)\b/i.test(selector)) return null;
	const texts = declarations.map((declaration) =>
		mustInsist(selector, declaration, scene) ? `${declaration.text} !important` : declaration.text,
	);
	if (texts.every((text, index) => text === declarations[index]?.text)) return null;
	return ` ${texts.join('; ')} `;
}

function mustInsist(selector: string, { name, isImportant }: Declaration, scene: Scene): boolean {
	if (isImportant || name === '' || name.startsWith('--')) return false;
	const subject = subjectOf(selector);
	const rivals = scene.inlined.filter(
		(rule) =>
			mayMeet(rule.subject, subject) &&
			rule.declarations.some((other) => !other.isImportant && areRelated(other.name, name)),
	);
	if (rivals.length === 0) return false;
	const own = specificityOf(selector);
	const beaten = rivals.filter(
		({ specificity, order }) => own > specificity || (own === specificity && scene.order > order),
	);
	return beaten.length === rivals.length || (scene.isConditional && beaten.length > 0);
}

/** Whether one sets the same as the other, or a part of it. */
function areRelated(one: string, other: string): boolean {
	if (one === other || one.startsWith(`${other}-`) || other.startsWith(`${one}-`)) return true;
	if (one.startsWith('border-') && other.startsWith('border-')) return true;
	return [one, other].sort().join() === 'font,line-height';
}

/** False when the last parts of the selectors name different elements. */
function mayMeet(a: Subject, b: Subject): boolean {
	return (a.tag === '' || b.tag === '' || a.tag === b.tag) && (a.id === '' || b.id === '' || a.id === b.id);
}

function subjectOf(selector: string): Subject {
	const last =
		bare(selector)
			.split(/[\s>+~]+/)
			.at(-1) ?? '';
	return {
		tag: /^[a-z][\w-]*/i.exec(last)?.[0].toLowerCase() ?? '',
		id: /#([\w-]+)/.exec(last)?.[1] ?? '',
	};
}

/** Selectors Level 3 s.9, as one number. */
function specificityOf(selector: string): number {
	const text = bare(selector);
	const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0;
	const ids = count(/#[\w-]/g);
	const classes = count(/\.[\w-]/g) + count(/\[/g) + count(/(?<!:):(?!not\b|is\b|where\b|:)[\w-]/g);
	const tags = count(/(?:^|[\s>+~(])[a-z]/gi) + count(/::/g);
	return ids * 1_000_000 + classes * 1000 + tags;
}

/** Without brackets and strings, where dots and hashes are no selectors; `(2n+1)` and the like go too. */
function bare(selector: string): string {
	return selector
		.trim()
		.replace(/\[[^\]]*\]?/g, '[')
		.replace(/(:nth-[\w-]+)\([^)]*\)/gi, '$1');
}

/** `body` and `block` are the text between the braces, as written; `block` is null for `@import …;`. */
type CssStatement =
	| { readonly kind: 'rule'; readonly selectors: readonly string[]; readonly body: string }
	| { readonly kind: 'at'; readonly name: string; readonly prelude: string; readonly block: string | null };

/** One `name: value` of a rule; `text` is all of it without the semicolon. `name` is in lower case. */
interface Declaration {
	readonly name: string;
	readonly isImportant: boolean;
	readonly text: string;
}

/** Strings, and escapes: their content has no meaning here. */
const opaque = /"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?|\\[\s\S]/;

export function cssStatements(css: string): CssStatement[] {
	const sheet = withoutComments(css);
	const statements: CssStatement[] = [];
	let start = 0;
	let open = -1;
	let braces = 0;
	const end = (at: number) => {
		const statement = statementOf(
			sheet.slice(start, open === -1 ? at : open),
			open === -1 ? null : sheet.slice(open + 1, at),
		);
		if (statement !== null) statements.push(statement);
		start = at + 1;
		open = -1;
	};
	for (const { char, at } of marks(sheet, '{};')) {
		if (char === '{') {
			if (braces === 0) open = at;
			braces += 1;
		} else if (char === '}') {
			if (braces === 1) end(at);
			braces = Math.max(0, braces - 1);
		} else if (braces === 0) end(at);
	}
	if (open !== -1) end(sheet.length);
	return statements;
}

/** The declarations of a rule; null when other rules are nested in it. */
function declarationsOf(body: string): Declaration[] | null {
	const cuts = [...marks(body, ';{')];
	if (cuts.some(({ char }) => char === '{')) return null;
	return pieces(body, cuts).map((text) => ({
		name: text
			.slice(0, Math.max(0, text.indexOf(':')))
			.trim()
			.toLowerCase(),
		isImportant: /!\s*important$/i.test(text),
		text,
	}));
}

/** The statement as text again. */
export function formatStatement(statement: CssStatement): string {
	if (statement.kind === 'rule') return `${statement.selectors.join(', ')} {${statement.body}}`;
	const { name, prelude, block } = statement;
	const head = `@${name}${prelude === '' ? '' : ` ${prelude}`}`;
	return block === null ? `${head};` : `${head} {${block}}`;
}

function statementOf(before: string, block: string | null): CssStatement | null {
	const prelude = before.replace(/^(?:\s|<!--|-->)+/, '').trim();
	const at = /^@([\w-]+)([\s\S]*)$/.exec(prelude);
	if (at !== null) {
		return { kind: 'at', name: (at[1] ?? '').toLowerCase(), prelude: (at[2] ?? '').trim(), block };
	}
	if (block === null || prelude === '') return null;
	return { kind: 'rule', selectors: pieces(prelude, [...marks(prelude, ',')]), body: block };
}

function pieces(text: string, cuts: readonly { at: number }[]): string[] {
	const bounds = [-1, ...cuts.map(({ at }) => at), text.length];
	return bounds
		.slice(1)
		.map((at, index) => text.slice((bounds[index] ?? -1) + 1, at).trim())
		.filter((piece) => piece !== '');
}

/** The positions of the wanted characters outside strings, parentheses and brackets. */
function* marks(text: string, wanted: string): Generator<{ char: string; at: number }> {
	let depth = 0;
	for (const match of text.matchAll(new RegExp(`${opaque.source}|[()[\\]{};,]`, 'g'))) {
		const char = match[0];
		if (char === '(' || char === '[') depth += 1;
		else if (char === ')' || char === ']') depth = Math.max(0, depth - 1);
		else if (depth === 0 && char.length === 1 && wanted.includes(char)) yield { char, at: match.index };
	}
}

function withoutComments(css: string): string {
	const comment = new RegExp(`${opaque.source}|url\\(\\s*[^"'\\s)][^)]*\\)|/\\*[\\s\\S]*?(?:\\*/|$)`, 'gi');
	return css.replace(comment, (found) => (found.startsWith('/*') ? ' ' : found));
}
