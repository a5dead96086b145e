/** Which of a message's recipients a report is about. One bounce never speaks against an address it was not sent to. */
import type { EmailKey } from '../../api/address.js';
import type { ReportedAddress, ReturnedReport } from '../../store/bounces.js';

/** Whom a message went to: `to`, whose fate is the message's own, and the copies. */
export interface Recipients {
	to: EmailKey;
	copies: readonly EmailKey[];
}

/** What a report says of one of them. */
export interface Finding extends Omit<ReportedAddress, 'addresses'> {
	address: EmailKey;
	isTo: boolean;
}

/**
 * Recipients that the report names, by the address that failed or by the one it says was sent to. Where it names none
 * of them, the mail was forwarded to somebody else: a signed return path still says which recipient of ours that was,
 * if there is only one. His mail failed; that somebody else's address is no good says nothing of his own, which may be
 * a list with one dead member. A complaint counts, for it was his mail. A Message-ID says less: it is quoted in answers
 * and archives.
 */
export function findingsOf(
	recipients: Recipients,
	report: Pick<ReturnedReport, 'kind' | 'matched' | 'recipients'>,
): Finding[] {
	const { to, copies } = recipients;
	const { kind, matched } = report;
	const named = [to, ...copies].flatMap((address) => {
		const entries = report.recipients.filter(({ addresses }) => addresses.includes(address));
		return foundAt(address, entries, to);
	});
	if (named.length > 0) return named;
	if (copies.length > 0 || (matched === 'message_id' && report.recipients.length > 0)) return [];
	return foundAt(to, report.recipients, to, kind).map((finding) => ({
		...finding,
		hard: finding.hard && report.recipients.every(({ addresses }) => addresses.some(isWithin(to))),
	}));
}

/** The same mailbox at a host below its domain, as a domain's own servers may write it: `ann@mx1.example.org`. */
function isWithin(recipient: EmailKey): (address: EmailKey) => boolean {
	const at = recipient.lastIndexOf('@');
	return (address) =>
		address.startsWith(recipient.slice(0, at + 1)) && address.endsWith(`.${recipient.slice(at + 1)}`);
}

/** Several entries about one recipient are hard if all of them are: of two he is forwarded to, one may be alive. */
function foundAt(
	address: EmailKey,
	entries: readonly ReportedAddress[],
	to: EmailKey,
	kind: ReturnedReport['kind'] = 'bounce',
): Finding[] {
	const telling = entries.find(({ hard }) => !hard) ?? entries[0];
	// A complaint need not name anybody; a bounce about nobody is none.
	if (telling === undefined && kind === 'bounce') return [];
	const { hard = false, smtp_code = null, diagnostic = null } = telling ?? {};
	return [{ address, isTo: address === to, hard, smtp_code, diagnostic }];
}
