/**
 * The effect of an inlined declaration on rules that stay in the style sheet. A style attribute overrides every rule
 * that is not `!important`, so a rule for small screens would lose its effect when the declaration it overrides is
 * inlined.
 */
import {
	type CssStatement,
	cssStatements,
	type Declaration,
	declarationsOf,
	formatStatement,
} from './css-statements.js';

/** Declarations that move into style attributes. `order` counts rules, in the order of the document. */
export interface Inlined {
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

/** What a rule with one selector inlines. */
export function inlinedRule(selector: string, order: number, declarations: readonly Declaration[]): Inlined {
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
export function keepWinning(statement: CssStatement, order: number, inlined: readonly Inlined[]): string {
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
