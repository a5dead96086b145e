/**
 * Reads the HTML of contents and inlines style sheets. Hostile documents take long, so this runs in a thread that can
 * be terminated.
 */
import type juice from 'juice';
import { planInlining } from '../content/inline-plan.js';
import { type HtmlQuestion, readHtml } from '../content/read-html.js';
import { answerQuestions } from './answering.js';

/** Use only juice's `inlineContent`, because its other functions fetch linked style sheets and images. */
const options: juice.Options = {
	// Without this, juice ends `font-family: &quot;A&quot;` at the semicolon of the entity.
	decodeStyleAttributes: true,
	// With this, juice throws on a declaration without a name instead of writing `undefined: x`.
	resolveCSSVariables: true,
	preserveImportant: true,
	inlinePseudoElements: false,
	applyWidthAttributes: true,
	applyHeightAttributes: true,
	applyAttributesTableElements: true,
};

/** Keeps pseudo-elements, @supports and `media="print"`, which juice would drop. */
function inlined(html: string, { inlineContent }: typeof juice): string {
	try {
		const plan = planInlining(html);
		return plan === null ? html : inlineContent(plan.html, plan.css, options);
	} catch (error) {
		const why = error instanceof Error ? error.message : String(error);
		throw new Error(`the CSS or the HTML could not be read (${why})`);
	}
}

/** Loads juice only on demand, because loading takes half of the thread's start time. */
async function inlinerFor({ inline }: HtmlQuestion): Promise<(html: string) => string> {
	if (!inline) return (html) => html;
	const { default: loaded } = await import('juice');
	return (html) => inlined(html, loaded);
}

answerQuestions({
	read: async (question: HtmlQuestion) => readHtml(question, await inlinerFor(question)),
});
