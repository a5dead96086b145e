/** Reads mails that came back beside the thread that answers requests: a hostile one takes a fifth of a second. */
import type { ReadMail } from '../delivery/bounces/read-mail.js';
import { type AskedOptions, createAskedThread } from './asked.js';

export type ReportAnswer = { kind: 'ready' } | { kind: 'read'; mail: ReadMail };

export interface ReportReader {
	/** One mail at a time, in order. Rejects past a deadline, and when the thread fails or is closed. */
	read(bytes: Uint8Array): Promise<ReadMail>;
	/** Ends the thread; what is under way rejects. */
	close(): Promise<void>;
}

/** A mail of 4 MiB, as bytes, as text and as lines; past this the thread dies instead of the process. */
const resourceLimits = { maxOldGenerationSizeMb: 256, stackSizeMb: 4 };
/** A hundred times what the worst is known to take. */
const deadlineMs = 20_000;

/** The thread is started for the first mail. However small one is, it may be made to be expensive: all go there. */
export function createReportReader({ spawn }: Pick<AskedOptions, 'spawn'> = {}): ReportReader {
	const thread = createAskedThread<Uint8Array, ReportAnswer>({
		name: 'report',
		title: 'the reader of bounces',
		resourceLimits,
		deadlineMs,
		...(spawn !== undefined && { spawn }),
	});
	return {
		read: async (bytes) => {
			// A copy of its own can be handed over; the bytes of a small mail may share their memory with others.
			const copy = new Uint8Array(bytes);
			const answer = await thread.ask(copy, [copy.buffer]);
			if (answer.kind === 'read') return answer.mail;
			throw new Error('the reader of bounces answered out of turn');
		},
		close: thread.close,
	};
}
