/** One thread that reads HTML and inlines CSS, started when it is first needed and again after it had to be ended. */
import type { AskHtml, HtmlQuestion, ReadHtml } from '../content/read-html.js';
import { createRequestThread } from './request-thread.js';

export type InlineAnswer =
	| { kind: 'ready' }
	| { kind: 'read'; read: ReadHtml }
	| { kind: 'failed'; why: string };

export interface Inliner {
	/** One document at a time, in order. Rejects past the deadline, and when the thread fails or is closed. */
	readonly read: AskHtml;
	/** Ends the thread; a document under way rejects. */
	close(): Promise<void>;
}

/**
 * For a document of 2 MiB and its tree; beyond this the thread dies instead of the process. The young generation fills
 * up to its limit in any case: with 16 MB documents of 10 KB took no less CPU than with 4.
 */
const resourceLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 };

/** `deadlineMs` is for one document (5,000 is a good value). An idle thread does not keep the process alive. */
export function createInliner({ deadlineMs }: { deadlineMs: number }): Inliner {
	const thread = createRequestThread<HtmlQuestion, InlineAnswer>({
		name: 'inline',
		title: 'the inliner',
		resourceLimits,
		deadlineMs,
	});
	return { read: async (question) => readIn(await thread.ask(question)), close: thread.close };
}

function readIn(answer: InlineAnswer): ReadHtml {
	if (answer.kind === 'read') return answer.read;
	throw new Error(answer.kind === 'failed' ? answer.why : 'the inliner answered out of turn');
}
