import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';

export interface ReturnedReport {
	sha256: string;
	at: Micros;
	message: Uuid;
	matched: 'return_path' | 'message_id';
	kind: 'bounce' | 'complaint';
	recipients: readonly ReportedAddress[];
}

export interface ReportedAddress {
	addresses: readonly EmailKey[];
	hard: boolean;
	uncounted?: true;
	smtp_code: string | null;
	diagnostic: string | null;
}

export interface Recipients {
	to: EmailKey;
	copies: readonly EmailKey[];
}

export interface Finding extends Omit<ReportedAddress, 'addresses'> {
	address: EmailKey;
	isTo: boolean;
}

/**
 * The recipients that the report names. A report that names none is about a forwarded mail. A signed return path
 * still identifies a single recipient: the mail failed, but a bad address behind it may be one dead member of a list.
 * A complaint counts. A Message-ID is weaker: answers and archives quote it.
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

/** The same mailbox at a host below its domain: `ann@mx1.example.org`. */
function isWithin(recipient: EmailKey): (address: EmailKey) => boolean {
	const at = recipient.lastIndexOf('@');
	return (address) =>
		address.startsWith(recipient.slice(0, at + 1)) && address.endsWith(`.${recipient.slice(at + 1)}`);
}

/** Hard if all entries are: of two forwarding addresses, one may be alive. */
function foundAt(
	address: EmailKey,
	entries: readonly ReportedAddress[],
	to: EmailKey,
	kind: ReturnedReport['kind'] = 'bounce',
): Finding[] {
	const telling = entries.find(({ hard }) => !hard) ?? entries[0];
	if (telling === undefined && kind === 'bounce') return [];
	const { addresses: _, ...told } = telling ?? { hard: false, smtp_code: null, diagnostic: null };
	return [{ address, isTo: address === to, ...told }];
}
