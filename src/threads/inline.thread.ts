/** Inlines style sheets with juice: slow on hostile documents, so it has a thread that can be ended. */
import { parentPort } from 'node:worker_threads';
import juice from 'juice';
import type { InlineAnswer, InlineMessage } from './inliner.js';

/** Only `juice()` itself: its other functions would fetch linked style sheets and pictures. */
const options: juice.Options = {
	removeStyleTags: true,
	preserveImportant: true,
	preserveMediaQueries: true,
	preserveFontFaces: true,
	preserveKeyFrames: true,
	preservePseudos: true,
	inlinePseudoElements: false,
	applyWidthAttributes: true,
	applyHeightAttributes: true,
	applyAttributesTableElements: true,
};

function answer(html: string): InlineAnswer {
	try {
		return { kind: 'inlined', html: juice(html, options) };
	} catch (error) {
		return { kind: 'failed', why: error instanceof Error ? error.message : String(error) };
	}
}

parentPort?.on('message', ({ html }: InlineMessage) => parentPort?.postMessage(answer(html)));
parentPort?.postMessage({ kind: 'ready' } satisfies InlineAnswer);
