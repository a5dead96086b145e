/** One thread that inlines CSS, started when it is first needed and again after it had to be ended. */
import type { InlineCss } from '../content/types.js';
import { createAskedThread } from './asked.js';

export interface InlineMessage {
	html: string;
}

export type InlineAnswer =
	| { kind: 'ready' }
	| { kind: 'inlined'; html: string }
	| { kind: 'failed'; why: string };

export interface Inliner {
	/** One document at a time, in order. Rejects past the deadline, and when the thread fails or is closed. */
	readonly inline: InlineCss;
	/** Ends the thread; what is under way rejects. */
	close(): Promise<void>;
}

/** A document of 2 MiB and its tree; past this the thread dies instead of the process. */
const resourceLimits = { maxOldGenerationSizeMb: 512, stackSizeMb: 4 };

/** `deadlineMs` is for one document (5,000 is a good value). An idle thread does not keep the process alive. */
export function createInliner({ deadlineMs }: { deadlineMs: number }): Inliner {
	const thread = createAskedThread<InlineMessage, InlineAnswer>({
		name: 'inline',
		title: 'the inliner',
		resourceLimits,
		deadlineMs,
	});
	return { inline: async (html) => inlinedHtml(await thread.ask({ html })), close: thread.close };
}

function inlinedHtml(answer: InlineAnswer): string {
	if (answer.kind === 'inlined') return answer.html;
	throw new Error(answer.kind === 'failed' ? answer.why : 'the inliner answered out of turn');
}
