import { cleanText } from '../reply.js';
import { addressesIn, isSame } from './addresses.js';
import { type Extract, isReturned, joinLines, type Notice } from './extract.js';
import { decodeWords, fieldValue, type Mail, placeOf, valuesOf } from './mime.js';
import {
	type DeliveryAction,
	type DeliveryReport,
	deliveryReport,
	inReturnedOnly,
	judgeStatement,
	notJudged,
	type ReportedRecipient,
} from './report.js';
import { onlyMentioned, type TextRecipient } from './text-recipients.js';
import { delays, deliveries, failing, failures, otherGoods, personal, statements } from './wordings.js';

export function readTextBounce(found: Extract): DeliveryReport | null {
	const { mail, sender, subject, notice } = found;
	if (notice === null || sender === 'person') return null;
	const text = joinLines(notice.lines);
	const isSaid = (wordings: readonly RegExp[]) => wordings.some((one) => one.test(subject) || one.test(text));
	const isDelay = isSaid(delays);
	if (!isDelay && !isSaid(failures) && failedRecipients(mail).length === 0) return null;
	const isSystem = sender === 'system';
	if (!isSystem && !isOwnStatement(found, notice)) return null;
	const recipients = recipientsOf(found, notice).filter((one) => isSystem || one.isStated);
	if (recipients.length === 0) return null;
	const isDelivery =
		isSaid([deliveries]) && !failing.test(subject) && !recipients.some(({ detail }) => failing.test(detail));
	const action = isDelivery ? 'delivered' : isDelay ? 'delayed' : 'failed';
	return deliveryReport(
		recipients.map((one) => judgeRecipient(one, action)),
		found,
	);
}

function judgeRecipient(one: TextRecipient, action: DeliveryAction): ReportedRecipient {
	const judged = judgeStatement(one, action);
	if (one.form === inReturnedOnly) return { ...judged, hard: false, why: notJudged };
	return one.form === 'local name'
		? { ...judged, hard: false, why: 'the report names a user without a domain' }
		: judged;
}

const openingLines = 12;

/** True if the mail tells its reader: your mail could not be delivered. */
function isOwnStatement({ mail, sender, subject }: Extract, notice: Notice): boolean {
	const lines = notice.lines.filter(({ text }) => text.trim() !== '');
	const opening = joinLines(lines.slice(0, openingLines));
	if (otherGoods.test(subject) || otherGoods.test(opening)) return false;
	const isStated = statements.some((one) => one.test(opening));
	const isSubject = failures.some((one) => one.test(subject));
	const isPersonal = lines.some(({ text }) => personal.test(text));
	if (sender === 'role')
		return isStated || isSubject || (!isPersonal && failures.some((one) => one.test(opening)));
	const isToldApart = isSubject || (sender === 'machine' && mail.parts.some(isReturned));
	const isQuoting = lines.some(({ text }) => /^\s{0,8}>/.test(text) && !/^\s*>>>/.test(text));
	return isStated && isToldApart && !isQuoting && !isPersonal;
}

function failedRecipients({ fields }: Mail): string[] {
	return addressesIn(valuesOf(fields, 'x-failed-recipients'));
}

function sendersOf({ fields }: Mail): string[] {
	const values = ['to', 'from', 'sender', 'reply-to', 'delivered-to', 'x-original-to'].map(
		(name) => fieldValue(fields, name) ?? '',
	);
	return addressesIn(values.map((value) => decodeWords(value).slice(0, 998)).join(' '));
}

/** Prefers X-Failed-Recipients (Exim) to the text, which may contain other addresses. */
function recipientsOf({ mail, returned }: Extract, notice: Notice): TextRecipient[] {
	const failed = failedRecipients(mail);
	const sentTo = returned?.to ?? [];
	const inText = likeliest(notice.recipients, { senders: sendersOf(mail), sentTo });
	const place = placeOf(notice.part);
	const detail = cleanText(joinLines(notice.lines));
	const whole = { detail, place, original: null, isWeak: false, isStated: true };
	if (failed.length > 0) {
		return failed.map((address) => {
			const known = inText.find((one) => isSame(one.address, address));
			return known ?? { ...whole, address, form: 'X-Failed-Recipients' };
		});
	}
	if (inText.length > 0) return inText;
	const local = localNameIn(mail, notice, sentTo);
	if (local !== null) return [{ ...whole, address: local, form: 'local name' }];
	return sentTo.length === 1 ? sentTo.map((address) => ({ ...whole, address, form: inReturnedOnly })) : [];
}

/** Finds a line with only a name, after a line that ends in a colon. The name is a mailbox of the reporting host. */
function localNameIn(mail: Mail, { lines }: Notice, sentTo: readonly string[]): string | null {
	const texts = lines.map(({ text }) => text.trim()).filter((text) => text !== '');
	const at = texts.findIndex(
		(text, index) => /^<?[\w.+-]{2,64}>?$/.test(text) && texts[index - 1]?.endsWith(':') === true,
	);
	const name = texts[at]?.replace(/[<>]/g, '');
	if (name === undefined || !/[a-z]/i.test(name)) return null;
	const known = sentTo.find((address) => address.toLowerCase().startsWith(`${name.toLowerCase()}@`));
	const host = /@([^\s<>@]{1,255})/.exec(fieldValue(mail.fields, 'from') ?? '')?.[1];
	return known ?? (host === undefined ? null : `${name}@${host.toLowerCase()}`);
}

/** If the text names recipients of the returned message, ignores any other address inside a sentence. */
function likeliest(
	all: readonly TextRecipient[],
	{ senders, sentTo }: { senders: readonly string[]; sentTo: readonly string[] },
): TextRecipient[] {
	const isOne = (of: readonly string[]) => (one: TextRecipient) =>
		of.some((each) => isSame(each, one.address));
	const others = all.filter((one) => !isOne(senders)(one) && !isRole(one.address));
	const isOriginal = isOne(all.flatMap(({ original }) => original ?? []));
	const isSentence = (one: TextRecipient) => one.form === 'sentence';
	const strong = all.filter(
		(one) => !one.isWeak && !(isSentence(one) && (isOriginal(one) || !others.includes(one))),
	);
	const confirmed = strong.filter(isOne(sentTo));
	if (confirmed.length > 0) return strong.filter((one) => confirmed.includes(one) || !isSentence(one));
	if (strong.length > 0) return strong;
	const known = others.filter(isOne(sentTo));
	if (known.length > 0) return known;
	const lines = others.filter(({ form }) => form !== onlyMentioned);
	if (lines.length > 0) return lines;
	// The text only mentions these addresses. Accept a single one, but not one of several.
	if (others.length > 0) return others.length === 1 ? others : [];
	return all.filter(({ form }) => form !== onlyMentioned);
}

function isRole(address: string): boolean {
	return /^(?:post_?master|mailer-?daemon|abuse|support|help(?:desk)?|hostmaster|webmaster|noc|no-?reply)@/i.test(
		address,
	);
}
