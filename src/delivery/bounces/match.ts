/** Which of our messages a report is about. */
import type { Uuid } from '../../api/records.js';
import type { ReturnedReport } from '../../store/bounces.js';
import type { Report } from './report.js';
import type { Verp } from './verp.js';

/** A message of ours, and how it is known. */
export type Matched = Pick<ReturnedReport, 'message' | 'matched'>;

/** What `readReport` reads of a mail at most; what comes later says nothing. */
const maxBytes = 4 * 1024 * 1024;
const messageUuid = /^([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})@/i;

/**
 * By the return path: the one the mail was taken for, the first in its header, then the first within (a feedback report
 * repeats the sender, a returned message has it as Return-Path). Then by our Message-ID, if the message came back. Null
 * for a report on somebody else's mail. A forged return path is none.
 */
export function matchMessage(
	report: Exclude<Report, { kind: 'auto_reply' | 'not_a_report' }>,
	{ bytes, verp, returnPath }: { bytes: Buffer; verp: Verp | null; returnPath: Uuid | null },
): Matched | null {
	const message = returnPath ?? verp?.findIn(bytes.toString('latin1', 0, maxBytes)) ?? null;
	if (message !== null) return { message, matched: 'return_path' };
	const uuid = messageUuid.exec(report.returned?.message_id ?? '')?.[1];
	return uuid === undefined ? null : { message: uuid.toLowerCase(), matched: 'message_id' };
}
