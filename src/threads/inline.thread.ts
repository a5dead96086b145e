/** Inlines style sheets with juice: slow on hostile documents, so it has a thread that can be ended. */
import { parentPort } from 'node:worker_threads';
import juice from 'juice';
import { maxInlinedLength } from '../content/inline-css.js';
import { planInlining } from '../content/inline-plan.js';
import type { InlineAnswer, InlineMessage } from './inliner.js';

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

/** What juice would keep of a style sheet is too little: no pseudo-elements, no @supports, nothing of `media="print"`. */
function inlined(html: string): string {
	const plan = planInlining(html);
	return plan === null ? html : juice.inlineContent(plan.html, plan.css, options);
}

function answer(html: string): InlineAnswer {
	try {
		const result = inlined(html);
		if (result.length > maxInlinedLength)
			return { kind: 'failed', why: 'the HTML would become larger than 4 MiB' };
		return { kind: 'inlined', html: result };
	} catch (error) {
		const why = error instanceof Error ? error.message : String(error);
		return { kind: 'failed', why: `the CSS or the HTML could not be read (${why})` };
	}
}

parentPort?.on('message', ({ html }: InlineMessage) => parentPort?.postMessage(answer(html)));
parentPort?.postMessage({ kind: 'ready' } satisfies InlineAnswer);
