import { readMarkup } from './attributes.js';
import { normalLineEnds } from './fill-variables.js';
import { inlineStyles } from './inline-css.js';
import { findLinks, type Link } from './links.js';
import { isTooDeep, tooDeep } from './nesting.js';
import { noAlternative, textAlternative } from './text-alternative.js';
import { quoteAttributes, type ValueGuard, valueGuards } from './value-guards.js';

export interface HtmlQuestion {
	readonly html: string;
	readonly inline: boolean;
	readonly alternative: boolean;
}

export interface ReadHtml {
	readonly html: string;
	/** Null if it was not requested or failed, or if the document has no visible text. */
	readonly alternative: string | null;
	readonly warnings: readonly string[];
	readonly links: readonly Link[];
	readonly guards: ReadonlyMap<number, ValueGuard>;
	readonly bodyEnd: number;
}

/** Rejects after its deadline, and if no reader is available. */
export type AskHtml = (question: HtmlQuestion) => Promise<ReadHtml>;

export function readHtml(question: HtmlQuestion, inlineCss: (html: string) => string): ReadHtml {
	const { inline, alternative } = question;
	const isDeep = isTooDeep(question.html);
	const inlined = !inline
		? { html: question.html, warnings: [] }
		: inlineStyles(question.html, isDeep ? refuse : inlineCss);
	const html = declaredUtf8(quoteAttributes(normalLineEnds(inlined.html)));
	const text = alternative ? alternativeOf(html, isDeep) : { text: null, warnings: [] };
	return {
		html,
		alternative: text.text,
		warnings: [...inlined.warnings, ...text.warnings],
		links: findLinks(html),
		guards: valueGuards(html),
		bodyEnd: readMarkup(html, () => false).bodyEnd ?? html.length,
	};
}

function declaredUtf8(html: string): string {
	const { attributes } = readMarkup(
		html,
		(tag, name, value) =>
			tag === 'meta' && (name === 'charset' || (name === 'content' && /charset\s{0,9}=/i.test(value))),
	);
	let written = '';
	let from = 0;
	for (const { name, start, end } of attributes) {
		const value = html.slice(start, end);
		const charset = name === 'charset' ? /.+/s : /(?<=charset\s{0,9}=\s{0,9}["']?)[\w.:-]{1,60}/i;
		if (/utf-?8/i.test(charset.exec(value)?.[0] ?? 'utf-8')) continue;
		written += html.slice(from, start) + value.replace(charset, 'utf-8');
		from = end;
	}
	return written + html.slice(from);
}

function refuse(): never {
	throw new Error(tooDeep);
}

/** Returns null instead of an empty alternative, which looks like spam. */
function alternativeOf(html: string, isDeep: boolean): { text: string | null; warnings: readonly string[] } {
	if (isDeep) return { text: null, warnings: [noAlternative(tooDeep)] };
	try {
		const text = textAlternative(html);
		return { text: text === '' ? null : text, warnings: [] };
	} catch (error) {
		return { text: null, warnings: [noAlternative(error instanceof Error ? error.message : String(error))] };
	}
}
