/**
 * What Amazon SES publishes of a message instead of a mail: JSON, by itself or as the `Message` of an SNS notification
 * (its developer guide, "Amazon SNS notification contents" and "event publishing").
 */
import { isRecord } from '../../api/schema/python.js';
import { cleanText } from '../reply.js';
import { addressesIn, addressIn } from './addresses.js';
import { isComplaint } from './arf.js';
import { judgeNamed } from './named.js';
import type { Report, ReportedRecipient, ReturnedMessage } from './report.js';

type Json = Readonly<Record<string, unknown>>;

const place = { part: '1', type: 'application/json', line: 1 };
const maxBytes = 4 * 1024 * 1024;

/** What a file of such JSON says; null for any other. Never throws. */
export function readSes(bytes: Buffer): Report | null {
	if (!/^\uFEFF?\s*\{/.test(bytes.toString('utf8', 0, 100))) return null;
	const outer = parsed(bytes.toString('utf8', 0, maxBytes).replace(/^\uFEFF/, ''));
	const { bounce, complaint, mail } = typeof outer['Message'] === 'string' ? parsed(outer['Message']) : outer;
	if (!isRecord(mail)) return null;
	if (isRecord(bounce)) return bounceOf(bounce, mail);
	return isRecord(complaint) ? complaintOf(complaint, mail) : null;
}

function bounceOf(bounce: Json, mail: Json): Report | null {
	const recipients = itemsOf(bounce, 'bouncedRecipients').flatMap((one) => recipientOf(one, bounce));
	if (recipients.length === 0) return null;
	const kind = recipients.some(({ action }) => action === 'failed') ? 'bounce' : 'delivery_notice';
	const reporting_mta = untyped(textOf(bounce, 'reportingMTA'));
	return { kind, reporting_mta, envelope_id: null, recipients, returned: returnedOf(mail) };
}

function recipientOf(one: Json, bounce: Json): ReportedRecipient[] {
	const address = addressIn(textOf(one, 'emailAddress') ?? '');
	// Without a report of the receiver it may be an automatic answer, which SES takes for a transient bounce.
	const hasFailed = textOf(bounce, 'bounceType') === 'Permanent' || textOf(one, 'action') === 'failed';
	const detail = cleanText(untyped(textOf(one, 'diagnosticCode')) ?? textOf(one, 'status') ?? '');
	const named = { detail, form: 'Amazon SES', place };
	return address === null ? [] : [judgeNamed({ address, ...named }, hasFailed ? 'failed' : 'delayed')];
}

function complaintOf(complaint: Json, mail: Json): Report {
	const type = (textOf(complaint, 'complaintFeedbackType') ?? 'abuse').toLowerCase().slice(0, 40);
	const addresses = itemsOf(complaint, 'complainedRecipients').map(
		(one) => textOf(one, 'emailAddress') ?? '',
	);
	return {
		kind: isComplaint(type) ? 'complaint' : 'feedback',
		feedback_type: type,
		recipients: addressesIn(addresses.join(' ')),
		user_agent: textOf(complaint, 'userAgent'),
		envelope_id: null,
		returned: returnedOf(mail),
		place,
	};
}

/** The header as we wrote it: SES sends with a Message-ID of its own. */
function returnedOf({ commonHeaders: header }: Json): ReturnedMessage | null {
	if (!isRecord(header)) return null;
	const to = Array.isArray(header['to']) ? header['to'].filter((one) => typeof one === 'string') : [];
	const message_id = textOf(header, 'messageId')?.slice(0, 998).replace(/^<|>$/g, '') ?? null;
	const subject = textOf(header, 'subject')?.slice(0, 998) ?? null;
	return { message_id, subject, to: addressesIn(to.join(' ')), x_headers: {}, place };
}

function parsed(text: string): Json {
	try {
		const value: unknown = JSON.parse(text);
		return isRecord(value) ? value : {};
	} catch {
		return {};
	}
}

function itemsOf(value: Json, name: string): Json[] {
	const items = value[name];
	return Array.isArray(items) ? items.filter(isRecord).slice(0, 1000) : [];
}

function textOf(value: Json, name: string): string | null {
	const text = value[name];
	return typeof text === 'string' && text !== '' ? text : null;
}

/** `smtp; 550 no` → `550 no`. */
function untyped(text: string | null): string | null {
	return text?.replace(/^[\w-]{1,40};[ \t]*/, '') ?? null;
}
