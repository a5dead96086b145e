import type { AskHtml, HtmlQuestion, ReadHtml } from '../content/read-html.js';
import type { ReadMail } from '../delivery/bounces/ingest.js';
import { createRequestThread, type RequestThreadOptions } from './request-thread.js';

export type InlineAnswer =
	| { kind: 'ready' }
	| { kind: 'read'; read: ReadHtml }
	| { kind: 'failed'; why: string };

interface Inliner {
	/** Answers one question at a time. Rejects after the deadline, or when the thread fails or is closed. */
	readonly read: AskHtml;
	close(): Promise<void>;
}

/**
 * Suffices for a document of 2 MiB and its tree. The young generation grows to its limit, and 16 MB took as much CPU
 * time as 4.
 */
const htmlLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 };

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
	read(bytes: Uint8Array): Promise<ReadMail>;
	close(): Promise<void>;
}

const mailLimits = { maxOldGenerationSizeMb: 256, stackSizeMb: 4 };
const mailDeadlineMs = 20_000;

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
			// Transfer a copy, because the bytes of a small mail may be in a shared buffer.
			const copy = new Uint8Array(bytes);
			const answer = await thread.ask(copy, [copy.buffer]);
			if (answer.kind === 'read') return answer.mail;
			throw new Error('the reader of bounces answered out of turn');
		},
		close: thread.close,
	};
}
