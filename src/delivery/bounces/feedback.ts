import { addressesIn, addressIn } from './addresses.js';
import { type Extract, isReturned } from './extract.js';
import { type Field, fieldsWithin, fieldValue, type Mail, type Part, placeOf, valuesOf } from './mime.js';
import type { FeedbackReport } from './report.js';

/** Types of RFC 5965 s.7.3 and its drafts that mean a complaint. Other types, such as `virus`, do not. */
const complaints = new Set(['abuse', 'fraud', 'opt-out', 'opt-out-list', 'complaint']);

export function isComplaint(type: string): boolean {
	return complaints.has(type);
}

export function readFeedback(found: Extract): FeedbackReport | null {
	const { mail } = found;
	const part = mail.parts.find((one) => one.type === 'message/feedback-report') ?? untypedIn(mail);
	if (part === undefined) return readOutlook(found);
	const fields = fieldsWithin(part);
	const type = (fieldValue(fields, 'feedback-type') ?? 'other').toLowerCase().slice(0, 40);
	return {
		kind: isComplaint(type) ? 'complaint' : 'feedback',
		feedback_type: type,
		recipients: recipientsOf(fields, mail),
		user_agent: fieldValue(fields, 'user-agent'),
		envelope_id: fieldValue(fields, 'original-envelope-id'),
		returned: found.returned,
		place: placeOf(part),
	};
}

function untypedIn(mail: Mail): Part | undefined {
	const [root] = mail.parts;
	if (root?.parameters.get('report-type')?.toLowerCase() !== 'feedback-report') return undefined;
	return mail.parts.find(
		(part) => !part.isMultipart && fieldValue(fieldsWithin(part), 'feedback-type') !== null,
	);
}

/** Complaints from Outlook.com (JMRP) do not follow RFC 5965. A field of the returned message names the recipient. */
function readOutlook(found: Extract): FeedbackReport | null {
	const { mail, subject } = found;
	const from = fieldValue(mail.fields, 'from') ?? '';
	if (
		!/\bstaff@(?:hotmail|outlook|live)\.com\b/i.test(from) &&
		!/^complaint about message from/i.test(subject)
	)
		return null;
	for (const part of mail.parts.filter((one) => !one.isMultipart)) {
		const told = fieldValue(fieldsWithin(part), outlookField) ?? fieldValue(part.fields, outlookField);
		if (told === null) continue;
		return {
			kind: 'complaint',
			feedback_type: 'abuse',
			recipients: addressesIn(told),
			user_agent: null,
			envelope_id: null,
			returned: found.returned,
			place: placeOf(part),
		};
	}
	return null;
}

const outlookField = 'x-hmxmroriginalrecipient';

function recipientsOf(fields: readonly Field[], mail: Mail): string[] {
	const own = addressesIn(valuesOf(fields, 'original-rcpt-to', 'removal-recipient'));
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
