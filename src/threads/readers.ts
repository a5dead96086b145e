import type { AskHtml, HtmlQuestion, ReadHtml } from '../content/read-html.js';
import type { ReadMail } from '../delivery/bounces/ingest.js';
import { createRequestThread, type RequestThreadOptions } from './request-thread.js';

interface Inliner {
	/** Rejects after the deadline, or when the thread fails or is closed. */
	readonly read: AskHtml;
	close(): Promise<void>;
}

/**
 * The old generation suffices for a document of 2 MiB and its tree. With a young generation of 4 to 16 MB, the CPU time
 * was the same.
 */
const htmlLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 };

export function createInliner({ deadlineMs }: { deadlineMs: number }): Inliner {
	const { ask, close } = createRequestThread<HtmlQuestion, ReadHtml>({
		name: 'inline',
		title: 'the inliner',
		resourceLimits: htmlLimits,
		deadlineMs,
	});
	return { read: ask, close };
}

export interface ReportReader {
	read(bytes: Uint8Array): Promise<ReadMail>;
	close(): Promise<void>;
}

const mailLimits = { maxOldGenerationSizeMb: 256, stackSizeMb: 4 };
const mailDeadlineMs = 20_000;

export function createReportReader({ spawn }: Pick<RequestThreadOptions, 'spawn'> = {}): ReportReader {
	const { ask, close } = createRequestThread<Uint8Array, ReadMail>({
		name: 'report',
		title: 'the reader of bounces',
		resourceLimits: mailLimits,
		deadlineMs: mailDeadlineMs,
		...(spawn !== undefined && { spawn }),
	});
	// Send a copy, because postMessage clones the whole buffer behind the bytes, which other mails may share.
	return { read: (bytes) => ask(new Uint8Array(bytes)), close };
}
