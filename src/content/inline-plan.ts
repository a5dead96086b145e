import { Parser } from 'htmlparser2';

interface InlinePlan {
	readonly html: string;
	readonly css: string;
}

/** Moves rules from the HTML to `css` if they can be inlined and apply to all media. Null if no rule moves. */
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
	let written = '';
	let from = 0;
	for (const { outerStart, start, outerEnd, statements } of sheets) {
		const kept = statements.filter(({ moves }) => !moves).map(({ statement }) => insistent(statement));
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

/** Pseudo-classes that depend only on the structure of the document. A rule with one of these can be inlined. */
const structural = /^:(root|empty|not|(first|last|only)-(child|of-type)|nth-(last-)?(child|of-type))$/i;

function canMove(selector: string, isBodyImplied: boolean): boolean {
	// The inliner misreads commas and combinators in strings.
	if (/("|')[^"']*[,>+~{}()[\]]/.test(selector)) return false;
	const text = selector.replace(/"[^"]*"|'[^']*'/g, '""');
	if ((text.match(/::?[\w-]+/g) ?? []).some((pseudo) => !structural.test(pseudo))) return false;
	return !(isBodyImplied && /\btbody\b|>\s*tr\b/i.test(text));
}

function hasImpliedBodies(html: string): boolean {
	return (html.match(/<table\b/gi)?.length ?? 0) > (html.match(/<tbody\b/gi)?.length ?? 0);
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

const conditions = new Set(['media', 'supports', 'container']);

/** Adds `!important` to a rule that stays in a style element. Otherwise inlined styles would override this rule. */
function insistent(statement: CssStatement): string {
	if (statement.kind === 'at') {
		if (statement.block === null || !conditions.has(statement.name)) return formatStatement(statement);
		const rules = cssStatements(statement.block).map(insistent);
		return formatStatement({ ...statement, block: `\n${rules.join('\n')}\n` });
	}
	const declarations = declarationsOf(statement.body);
	if (declarations === null) return formatStatement(statement);
	const texts = declarations.map((text) => (/!\s*important$/i.test(text) ? text : `${text} !important`));
	return formatStatement({ ...statement, body: ` ${texts.join('; ')} ` });
}

type CssStatement =
	| { readonly kind: 'rule'; readonly selectors: readonly string[]; readonly body: string }
	| { readonly kind: 'at'; readonly name: string; readonly prelude: string; readonly block: string | null };

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

function declarationsOf(body: string): string[] | null {
	const cuts = [...marks(body, ';{')];
	return cuts.some(({ char }) => char === '{') ? null : pieces(body, cuts);
}

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
