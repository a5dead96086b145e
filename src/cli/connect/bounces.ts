/** Returned mails, read for a person. */

import { readReport } from '../../delivery/bounces/ingest.js';
import { isMbox, mailsIn } from '../../delivery/bounces/mailbox.js';
import type { Place, Report, ReportedRecipient, ReturnedMessage } from '../../delivery/bounces/report.js';

export type { Place, Report, ReportedRecipient, ReturnedMessage };

/** The reports of a file. Mails of an mbox keep their order, each with lines of its own from 1. */
export type Explained = { kind: 'mail'; report: Report } | { kind: 'mbox'; reports: Report[] };

/** A file as it arrived: one mail, or an mbox; `not_a_report` for anything else. Never rejects. */
export async function explainFile(bytes: Buffer): Promise<Explained> {
	if (!isMbox(bytes)) return { kind: 'mail', report: readReport(bytes) };
	const reports: Report[] = [];
	for await (const mail of mailsIn(whole(bytes))) reports.push(readReport(mail.bytes));
	return { kind: 'mbox', reports };
}

async function* whole(bytes: Buffer): AsyncGenerator<Buffer> {
	yield bytes;
}
