/** What recording reports would come to, without recording them. */
import type { ReportOutcome, ReturnedReport } from '../../store/bounces.js';
import type { Reads } from '../../store/store.js';

/**
 * Stands in for the store's own operation over one run: what this run has met is known when it comes again, as it would
 * be if it were recorded.
 */
export function foreseeReports(
	reads: Pick<Reads, 'foreseeReport'>,
): (report: ReturnedReport) => Promise<ReportOutcome> {
	const met = new Set<string>();
	return async (report) => {
		const outcome = await reads.foreseeReport(report);
		if (outcome.kind !== 'recorded') return outcome;
		const keys = [report.sha256, saidOf(report, outcome.effect)];
		const isMet = keys.some((key) => met.has(key));
		for (const key of keys) met.add(key);
		return isMet ? { kind: 'known' } : outcome;
	};
}

/** The same said of the same recipients of a message. */
function saidOf({ message, recipients }: ReturnedReport, effect: string): string {
	const addresses = recipients.flatMap((one) => one.addresses).sort();
	return JSON.stringify([message, effect, ...addresses]);
}
