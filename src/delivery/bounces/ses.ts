import { isRecord } from '../../api/json.js';
import { cleanText } from '../reply.js';
import { addressesIn, addressIn } from './addresses.js';
import { isComplaint } from './feedback.js';
import { decodeTransfer, fieldValue, type Mail, maxMailBytes } from './mime.js';
import {
	type DeliveryAction,
	deliveryReport,
	judgeStatement,
	type Report,
	type ReportedRecipient,
	type ReturnedMessage,
} from './report.js';

type Json = Readonly<Record<string, unknown>>;

const place = { part: '1', type: 'application/json', line: 1 };

export function readSes(bytes: Buffer): Report | null {
	return publishedIn(bytes.toString('utf8', 0, maxMailBytes).replace(/^\uFEFF/, ''));
}

/** Reads a mail that SNS sends to a subscribed address: JSON, then a footer. */
export function readSesMail(mail: Mail): Report | null {
	const isBySns = mail.fields.some(({ name }) => name.startsWith('x-amz-sns-'));
	const isFromSns = /@sns\.amazonaws\.com\b/i.test(fieldValue(mail.fields, 'from') ?? '');
	const part = mail.parts.find(({ isMultipart }) => !isMultipart);
	if (part === undefined || !(isBySns || isFromSns)) return null;
	const text = decodeTransfer(part.body, part.encoding).toString('utf8');
	const begin = /^\s{0,100}\{/.exec(text)?.[0].length;
	if (begin === undefined) return null;
	const footer = /\r?\n-- ?\r?\n/.exec(text)?.index;
	const json = text.slice(begin - 1, footer);
	// Relays break lines of more than 990 characters. Some write `!` before the break.
	return publishedIn(json) ?? publishedIn(json.replace(/!\r?\n /g, '').replace(/\r?\n/g, ''));
}

function publishedIn(text: string): Report | null {
	const outer = parsed(text);
	const event = typeof outer['Message'] === 'string' ? parsed(outer['Message']) : outer;
	const { complaint, mail } = event;
	if (!isRecord(mail)) return null;
	if (isRecord(complaint)) return complaintOf(complaint, mail);
	const told = [event['bounce'], event['delivery'], event['deliveryDelay']].find(isRecord);
	if (told === undefined) return null;
	const delivered = told === event['delivery'] && told['recipients'];
	const { smtpResponse: diagnosticCode } = told;
	const items = Array.isArray(delivered)
		? delivered.slice(0, 1000).map((emailAddress) => ({ emailAddress, diagnosticCode }))
		: itemsOf(told, told === event['bounce'] ? 'bouncedRecipients' : 'delayedRecipients');
	// SES also reports automatic replies as transient bounces, but without an `action`.
	const isFailed = (one: Json) =>
		textOf(told, 'bounceType') === 'Permanent' || textOf(one, 'action') === 'failed';
	const actionOf = (one: Json) => (delivered ? 'delivered' : isFailed(one) ? 'failed' : 'delayed');
	const recipients = items.flatMap((one) => recipientOf(one, told, actionOf(one)));
	const reporting_mta = untyped(textOf(told, 'reportingMTA'));
	return recipients.length === 0
		? null
		: deliveryReport(recipients, { reporting_mta, returned: returnedOf(mail) });
}

function recipientOf(one: Json, told: Json, action: DeliveryAction): ReportedRecipient[] {
	const address = addressIn(textOf(one, 'emailAddress') ?? '');
	const said = untyped(textOf(one, 'diagnosticCode')) ?? textOf(one, 'status') ?? textOf(told, 'delayType');
	if (address === null) return [];
	const detail = cleanText(said ?? '');
	return [judgeStatement({ address, detail, form: 'Amazon SES', original: null, place }, action)];
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

/** `commonHeaders` has the original Message-ID, which SES replaces when it sends the mail. */
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

function untyped(text: string | null): string | null {
	return text?.replace(/^[\w-]{1,40};[ \t]*/, '') ?? null;
}
