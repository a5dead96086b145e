/** What recording a report would come to, without recording it. */
import { emailKey, parseMailbox } from '../../api/address.js';
import { findingsOf } from '../../engine/rules/bounces.js';
import type { ReportOutcome, ReturnedReport } from '../../store/bounces.js';
import type { Reads } from '../../store/store.js';
import { addressOf } from '../composer.js';

/** Stands in for the store's own operation. It does not know which mails were seen before: nothing is `known`. */
export function foreseeReport(
	reads: Pick<Reads, 'getMessage' | 'getSubmission'>,
): (report: ReturnedReport) => Promise<ReportOutcome> {
	return async (report) => {
		const found = await reads.getMessage({ id: report.message });
		const submission = found === null ? null : await reads.getSubmission({ id: found.rendering.submission });
		if (found === null || submission === null) return { kind: 'unmatched' };
		const { cc, bcc } = submission.envelope;
		const to = emailKey(addressOf(found.message.to));
		const copies = [...cc, ...bcc].map((text) => parseMailbox(text)?.key ?? emailKey(text));
		const recipients = { to, copies: copies.filter((key) => key !== to) };
		const [finding] = findingsOf(recipients, report);
		if (finding === undefined) return { kind: 'unmatched' };
		if (report.kind === 'complaint') return { kind: 'recorded', effect: 'complaint' };
		return { kind: 'recorded', effect: finding.hard ? 'hard_bounce' : 'soft_bounce' };
	};
}
