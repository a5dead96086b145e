/**
 * Reads returned mails in a separate thread: a hostile one takes a fifth of a second, which requests must not
 * wait for.
 */
import type { ReadMail } from '../delivery/bounces/ingest.js';
import { createRequestThread, type RequestThreadOptions } from './request-thread.js';

export type ReportAnswer = { kind: 'ready' } | { kind: 'read'; mail: ReadMail };

export interface ReportReader {
	/** One mail at a time, in order. Rejects past a deadline, and when the thread fails or is closed. */
	read(bytes: Uint8Array): Promise<ReadMail>;
	/** Ends the thread; a mail under way rejects. */
	close(): Promise<void>;
}

/** For a mail of 4 MiB, as bytes, as text and as lines; beyond this the thread dies instead of the process. */
const resourceLimits = { maxOldGenerationSizeMb: 256, stackSizeMb: 4 };
/** A hundred times the longest known time. */
const deadlineMs = 20_000;

/** Starts the thread with the first mail. All mails go there: a small one can be expensive too. */
export function createReportReader({ spawn }: Pick<RequestThreadOptions, 'spawn'> = {}): ReportReader {
	const thread = createRequestThread<Uint8Array, ReportAnswer>({
		name: 'report',
		title: 'the reader of bounces',
		resourceLimits,
		deadlineMs,
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
