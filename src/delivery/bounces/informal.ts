/** Reports that are no RFC 3464: recognised by who writes, known words, and lines that name recipients. */
import { cleanText } from '../reply.js';
import { addressesIn, isSame } from './addresses.js';
import { decodeWords } from './decode.js';
import { fieldValue, type Line } from './fields.js';
import { delays, failures, mailSystems } from './forms.js';
import type { Mail, Part } from './mime.js';
import { joined, type NamedRecipient, namedIn, strongest } from './named.js';
import type { DeliveryAction } from './report.js';
import { findReturned, isReturned, ownLines } from './returned.js';
import { visibleText } from './visible-text.js';

/** The words of a report that were written for people. */
export interface Notice {
	part: Part;
	/** Up to the returned message. */
	lines: readonly Line[];
	/** Whom they name; looked for when first asked for, and once: a report may have a thousand recipients. */
	named(): readonly NamedRecipient[];
}

/** The first text of a mail that is not the returned message; null when there is none. */
export function findNotice(mail: Mail): Notice | null {
	const texts = mail.parts.filter((part) => !part.isMultipart && !isReturned(part));
	const part =
		texts.find(({ type, body }) => type === 'text/plain' && body.trim() !== '') ??
		texts.find(({ type }) => type === 'text/html') ??
		// A multipart whose boundary is nowhere to be found: its text is there all the same.
		texts.find(({ type, path }) => type.startsWith('multipart/') && path === '1') ??
		texts.find(({ type }) => type.startsWith('multipart/'));
	if (part === undefined) return null;
	const lines = part.type === 'text/html' ? visibleText(part.lines()) : part.lines();
	return noticeOf(part, ownLines(lines));
}

function noticeOf(part: Part, lines: readonly Line[]): Notice {
	let named: readonly NamedRecipient[] | null = null;
	return {
		part,
		lines,
		named: () => {
			named ??= namedIn(lines, part);
			return named;
		},
	};
}

/** Whether a mail system says that something was not delivered, and what; null when it is no such mail. */
export function readInformal(
	mail: Mail,
	notice: Notice | null,
): { action: DeliveryAction; recipients: NamedRecipient[] } | null {
	if (notice === null || !isFromMailSystem(mail)) return null;
	const subject = decodeWords(fieldValue(mail.fields, 'subject') ?? '');
	const words = [subject, joined(notice.lines)];
	const isKnown = failures.some((one) => words.some((text) => one.test(text)));
	const isDelay = delays.some((one) => words.some((text) => one.test(text)));
	if (!isKnown && !isDelay && failedRecipients(mail).length === 0) return null;
	const recipients = recipientsOf(mail, notice);
	return recipients.length === 0 ? null : { action: isDelay ? 'delayed' : 'failed', recipients };
}

/** What a notice says about one address; null when it names somebody else only. */
export function namedAs(notice: Notice, address: string): NamedRecipient | null {
	return notice.named().find((one) => isSame(one.address, address)) ?? null;
}

/** The null sender, or the name of a mail system; a person's mail is no report, whatever it quotes. */
export function isFromMailSystem(mail: Mail): boolean {
	return fieldValue(mail.fields, 'return-path') === '<>' || isNamedMailSystem(mail);
}

/** Whether who writes is called a mail system, or nothing at all: vacation answers have the null sender too. */
export function isNamedMailSystem({ fields }: Mail): boolean {
	const from = decodeWords(fieldValue(fields, 'from') ?? '');
	return (
		/<>|^$/.test(from) || mailSystems.test(from) || mailSystems.test(fieldValue(fields, 'return-path') ?? '')
	);
}

function failedRecipients({ fields }: Mail): string[] {
	return addressesIn(
		fields
			.filter(({ name }) => name === 'x-failed-recipients')
			.map(({ value }) => value)
			.join(' '),
	);
}

/** Named in the text; else in X-Failed-Recipients, which also tells a recipient from others named; else who it went to. */
function recipientsOf(mail: Mail, notice: Notice): NamedRecipient[] {
	const failed = failedRecipients(mail);
	const senders = addressesIn(fieldValue(mail.fields, 'to') ?? '');
	const named = strongest(notice.named(), senders);
	const place = { part: notice.part.path, type: notice.part.type, line: notice.part.line };
	const whole = { detail: cleanText(joined(notice.lines)), place };
	if (failed.length > 0) {
		return failed.map((address) => {
			const found = named.find((one) => isSame(one.address, address));
			return found ?? { ...whole, address, form: 'X-Failed-Recipients', isWeak: false };
		});
	}
	if (named.length > 0) return named;
	const to = findReturned(mail)?.to ?? [];
	return to.length === 1
		? to.map((address) => ({ ...whole, address, form: 'returned message', isWeak: true }))
		: [];
}
