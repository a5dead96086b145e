/**
 * Reads the HTML of contents: markup, links, text alternative, style sheets inlined by juice. Hostile documents make
 * all of it slow, so it has a thread that can be ended.
 */
import { parentPort } from 'node:worker_threads';
import type juice from 'juice';
import { planInlining } from '../content/inline-plan.js';
import { type HtmlQuestion, readHtml } from '../content/read-html.js';
import type { InlineAnswer } from './readers.js';

/** `inlineContent` alone: the other functions would fetch linked style sheets and pictures. */
const options: juice.Options = {
	// Style attributes written as `font-family: &quot;A&quot;` would be cut at the semicolon of the entity.
	decodeStyleAttributes: true,
	// Besides resolving var(), this makes juice throw on a declaration without a name instead of writing `undefined: x`.
	resolveCSSVariables: true,
	preserveImportant: true,
	inlinePseudoElements: false,
	applyWidthAttributes: true,
	applyHeightAttributes: true,
	applyAttributesTableElements: true,
};

/** juice would keep too little of a style sheet: no pseudo-elements, no @supports, nothing of `media="print"`. */
function inlined(html: string, { inlineContent }: typeof juice): string {
	try {
		const plan = planInlining(html);
		return plan === null ? html : inlineContent(plan.html, plan.css, options);
	} catch (error) {
		const why = error instanceof Error ? error.message : String(error);
		throw new Error(`the CSS or the HTML could not be read (${why})`);
	}
}

/** juice is half of what this thread needs to start, so it is loaded for the first style sheet. */
async function inlinerFor({ inline }: HtmlQuestion): Promise<(html: string) => string> {
	if (!inline) return (html) => html;
	const { default: loaded } = await import('juice');
	return (html) => inlined(html, loaded);
}

async function answer(question: HtmlQuestion): Promise<InlineAnswer> {
	try {
		return { kind: 'read', read: readHtml(question, await inlinerFor(question)) };
	} catch (error) {
		return { kind: 'failed', why: error instanceof Error ? error.message : String(error) };
	}
}

parentPort?.on('message', async (question: HtmlQuestion) => parentPort?.postMessage(await answer(question)));
parentPort?.postMessage({ kind: 'ready' } satisfies InlineAnswer);
