/**
 * Splits a style sheet into its statements (CSS Syntax Level 3, s.5), as far as inlining needs: what a rule selects and
 * declares. Nothing is validated; odd text stays as it is written.
 */

/** `body` and `block` are the text between the braces, as written; `block` is null for `@import …;`. */
export type CssStatement =
	| { readonly kind: 'rule'; readonly selectors: readonly string[]; readonly body: string }
	| { readonly kind: 'at'; readonly name: string; readonly prelude: string; readonly block: string | null };

/** One `name: value` of a rule; `text` is all of it without the semicolon. `name` is in lower case. */
export interface Declaration {
	readonly name: string;
	readonly isImportant: boolean;
	readonly text: string;
}

/** Strings, and escapes: their content has no meaning here. */
const opaque = /"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?|\\[\s\S]/;

/** The statements of a sheet, or of the block of an at-rule. Comments are dropped. */
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
	// The end closes everything that is open.
	if (open !== -1) end(sheet.length);
	return statements;
}

/** The declarations of a rule; null when other rules are nested in it. */
export function declarationsOf(body: string): Declaration[] | null {
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
	// The comment marks of HTML are blanks to CSS.
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
