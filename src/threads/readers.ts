/** Threads that read HTML, and returned mails: each is started when it is first needed, and again after it had to be ended. */
import type { AskHtml, HtmlQuestion, ReadHtml } from '../content/read-html.js';
import type { ReadMail } from '../delivery/bounces/ingest.js';
import { createRequestThread, type RequestThreadOptions } from './request-thread.js';

export type InlineAnswer =
	| { kind: 'ready' }
	| { kind: 'read'; read: ReadHtml }
	| { kind: 'failed'; why: string };

interface Inliner {
	/** One document at a time, in order. Rejects past the deadline, and when the thread fails or is closed. */
	readonly read: AskHtml;
	close(): Promise<void>;
}

/**
 * For a document of 2 MiB and its tree; beyond this the thread dies instead of the process. The young generation fills
 * up to its limit in any case: with 16 MB documents of 10 KB took no less CPU than with 4.
 */
const htmlLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 };

/** `deadlineMs` is for one document (5,000 is a good value). An idle thread does not keep the process alive. */
export function createInliner({ deadlineMs }: { deadlineMs: number }): Inliner {
	const thread = createRequestThread<HtmlQuestion, InlineAnswer>({
		name: 'inline',
		title: 'the inliner',
		resourceLimits: htmlLimits,
		deadlineMs,
	});
	return { read: async (question) => readIn(await thread.ask(question)), close: thread.close };
}

function readIn(answer: InlineAnswer): ReadHtml {
	if (answer.kind === 'read') return answer.read;
	throw new Error(answer.kind === 'failed' ? answer.why : 'the inliner answered out of turn');
}

export type ReportAnswer = { kind: 'ready' } | { kind: 'read'; mail: ReadMail };

export interface ReportReader {
	/** One mail at a time, in order. Rejects past a deadline, and when the thread fails or is closed. */
	read(bytes: Uint8Array): Promise<ReadMail>;
	close(): Promise<void>;
}

/** For a mail of 4 MiB, as bytes, as text and as lines; beyond this the thread dies instead of the process. */
const mailLimits = { maxOldGenerationSizeMb: 256, stackSizeMb: 4 };
const mailDeadlineMs = 20_000;

/** Starts the thread with the first mail. All mails go there: a small one can be expensive too. */
export function createReportReader({ spawn }: Pick<RequestThreadOptions, 'spawn'> = {}): ReportReader {
	const thread = createRequestThread<Uint8Array, ReportAnswer>({
		name: 'report',
		title: 'the reader of bounces',
		resourceLimits: mailLimits,
		deadlineMs: mailDeadlineMs,
		...(spawn !== undefined && { spawn }),
	});
	return {
		read: async (bytes) => {
			// A copy of its own can be transferred; the bytes of a small mail may share their memory with others.
			const copy = new Uint8Array(bytes);
			const answer = await thread.ask(copy, [copy.buffer]);
			if (answer.kind === 'read') return answer.mail;
			throw new Error('the reader of bounces answered out of turn');
		},
		close: thread.close,
	};
}
