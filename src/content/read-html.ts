import { variablesIn } from '../api/variables.js';
import { type Edit, edited, readMarkup } from './attributes.js';
import { normalLineEnds } from './fill-variables.js';
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
	/** Null if not requested, if the conversion failed, or if the document has no visible text. */
	readonly alternative: string | null;
	readonly warnings: readonly string[];
	readonly links: readonly Link[];
	readonly guards: ReadonlyMap<number, ValueGuard>;
	readonly bodyEnd: number;
}

/** Rejects if the HTML reader fails, is closed or takes too long. */
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
	const edits = attributes.flatMap(({ name, start, end }): Edit[] => {
		const value = html.slice(start, end);
		const charset = name === 'charset' ? /.+/s : /(?<=charset\s{0,9}=\s{0,9}["']?)[\w.:-]{1,60}/i;
		const isUtf8 = /utf-?8/i.test(charset.exec(value)?.[0] ?? 'utf-8');
		return isUtf8 ? [] : [[start, end, value.replace(charset, 'utf-8')]];
	});
	return edited(html, edits);
}

function refuse(): never {
	throw new Error(tooDeep);
}

/** Returns null for an empty text, because a mail with an empty text part looks like spam. */
function alternativeOf(html: string, isDeep: boolean): { text: string | null; warnings: readonly string[] } {
	if (isDeep) return { text: null, warnings: [noAlternative(tooDeep)] };
	try {
		const text = textAlternative(html);
		return { text: text === '' ? null : text, warnings: [] };
	} catch (error) {
		return { text: null, warnings: [noAlternative(error instanceof Error ? error.message : String(error))] };
	}
}

const maxInlineBytes = 2 * 1024 * 1024;
/** Limits inlined HTML, because a rule of 1 KB may be copied into each of 10,000 elements. */
const maxInlinedLength = 2 * maxInlineBytes;

function inlineStyles(
	html: string,
	inlineCss: (html: string) => string,
): { html: string; warnings: readonly string[] } {
	if (!/<style[\s>/]/i.test(html)) return { html, warnings: [] };
	if (Buffer.byteLength(html) > maxInlineBytes) return asWritten(html, 'the HTML is larger than 2 MiB');
	try {
		const inlined = withPossibleAttributes(html, inlineCss(html));
		if (inlined.length > maxInlinedLength) return asWritten(html, 'the HTML would become larger than 4 MiB');
		if (!keepsVariables(html, inlined)) return asWritten(html, 'it would have changed the variables');
		if (!keepsLinks(html, inlined)) return asWritten(html, 'it would have changed the links');
		return { html: inlined, warnings: [] };
	} catch (error) {
		return asWritten(html, error instanceof Error ? error.message : String(error));
	}
}

const size = /^\d+(?:\.\d+)?%?$/;
/** Valid values by attribute. The inliner also copies invalid values from styles, such as `height: auto`. */
const possible: ReadonlyMap<string, RegExp> = new Map([
	['width', size],
	['height', size],
	['bgcolor', /^(?:#[\da-f]{3,8}|[a-z]+)$/i],
	['align', /^(?:left|right|center|justify)$/i],
	['valign', /^(?:top|middle|bottom|baseline)$/i],
]);

/** Undoes the inliner's invalid attributes: restores the author's attribute, or removes it if the author wrote none. */
function withPossibleAttributes(before: string, after: string): string {
	const read = (html: string) =>
		readMarkup(html, (_tag, name) => possible.has(name)).attributes.filter(({ isRepeated }) => !isRepeated);
	const own = new Map(
		read(before).map(({ tagIndex, name, start, end }) => [`${tagIndex} ${name}`, before.slice(start, end)]),
	);
	const edits = read(after).flatMap(({ tagIndex, name, start, end }): Edit[] => {
		const value = own.get(`${tagIndex} ${name}`);
		if (value === after.slice(start, end) || possible.get(name)?.test(after.slice(start, end))) return [];
		return [value === undefined ? [start - name.length - 3, end + 1, ''] : [start, end, value]];
	});
	return edited(after, edits);
}

/** True if inlining kept the number of each variable, or only added copies of variables from a style sheet. */
function keepsVariables(before: string, after: string): boolean {
	const [body, css] = apart(before);
	const was = count(variablesIn(body));
	const styled = new Set(variablesIn(css));
	const is = count(variablesIn(apart(after)[0]));
	return [...new Set([...was.keys(), ...is.keys()])].every((name) => {
		const [old, now] = [was.get(name) ?? 0, is.get(name) ?? 0];
		return now === old || (now > old && styled.has(name));
	});
}

/** True if inlining kept the links in their order, because a click identifies its link by position. */
function keepsLinks(before: string, after: string): boolean {
	const targets = (html: string) => JSON.stringify(findLinks(html).map(({ target }) => target));
	return targets(before) === targets(after);
}

export function notInlined(why: string): string {
	return `CSS was not inlined: ${why.replace(/\.$/, '')}. The HTML goes out as written.`;
}

function asWritten(html: string, why: string): { html: string; warnings: readonly string[] } {
	return { html, warnings: [notInlined(why)] };
}

function count(names: readonly string[]): Map<string, number> {
	const counts = new Map<string, number>();
	for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
	return counts;
}

/** Separates HTML from its style elements without a lazy regular expression, which would take quadratic time. */
function apart(html: string): [outside: string, inside: string] {
	const lower = html.toLowerCase();
	// U+0130 is longer in lower case, which shifts offsets. Then the whole text counts as outside.
	if (lower.length !== html.length) return [html, ''];
	let outside = '';
	let inside = '';
	let from = 0;
	while (from < html.length) {
		const start = lower.indexOf('<style', from);
		const end = start === -1 ? -1 : lower.indexOf('</style', start);
		if (end === -1) break;
		outside += `${html.slice(from, start)} `;
		inside += `${html.slice(start, end)} `;
		from = end;
	}
	return [outside + html.slice(from), inside];
}
