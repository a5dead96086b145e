/** Feedback reports (RFC 5965): somebody pressed "this is spam", or a receiver has something else to say. */
import { addressesIn, addressIn } from './addresses.js';
import { type Field, fieldValue } from './fields.js';
import { fieldsWithin, type Mail } from './mime.js';
import type { FeedbackReport } from './report.js';
import { findReturned, isReturned } from './returned.js';

/**
 * Types by which a person says "no more of this". `opt-out` is of the drafts and in use; RFC 5965 s.3.1 has `fraud`,
 * which people report of mail they do not want. `not-spam`, `virus`, `other`, `auth-failure` (RFC 6591) are no such.
 */
const complaints = new Set(['abuse', 'fraud', 'opt-out', 'opt-out-list', 'complaint']);

/** Whether by this type, in lower case, a person wants no more of it. */
export function isComplaint(type: string): boolean {
	return complaints.has(type);
}

/** The feedback report of a mail; null when it has none. */
export function readFeedback(mail: Mail): FeedbackReport | null {
	const part = mail.parts.find((one) => one.type === 'message/feedback-report');
	if (part === undefined) return null;
	const fields = fieldsWithin(part);
	const type = (fieldValue(fields, 'feedback-type') ?? 'other').toLowerCase().slice(0, 40);
	return {
		kind: isComplaint(type) ? 'complaint' : 'feedback',
		feedback_type: type,
		recipients: recipientsOf(fields, mail),
		user_agent: fieldValue(fields, 'user-agent'),
		envelope_id: fieldValue(fields, 'original-envelope-id'),
		returned: findReturned(mail),
		place: { part: part.path, type: part.type, line: part.line },
	};
}

/** The report's own word, else what the returned message says; some receivers blank out both. */
function recipientsOf(fields: readonly Field[], mail: Mail): string[] {
	const named = fields.filter(({ name }) => name === 'original-rcpt-to' || name === 'removal-recipient');
	const own = addressesIn(named.map(({ value }) => value).join(' '));
	if (own.length > 0) return own;
	const returned = mail.parts.find(isReturned);
	if (returned === undefined) return [];
	const within = fieldsWithin(returned);
	for (const name of ['x-original-to', 'delivered-to', 'x-apparently-to', 'to']) {
		const address = addressIn(fieldValue(within, name) ?? '');
		if (address !== null) return [address];
	}
	return [];
}
