/** Mails that came back, read for a person. */
import { readReport } from '../../delivery/bounces/read.js';
import type { Place, Report, ReportedRecipient, ReturnedMessage } from '../../delivery/bounces/report.js';

export type { Place, Report, ReportedRecipient, ReturnedMessage };

/** What a mail as it arrived says; `not_a_report` for anything else. Never throws. */
export function explainMail(bytes: Buffer): Report {
	return readReport(bytes);
}
