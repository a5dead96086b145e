import { addressesIn, isSame } from './addresses.js';
import {
	decodeWords,
	type Field,
	fieldsWithin,
	fieldValue,
	findField,
	isFieldStart,
	type Line,
	type Mail,
	type Part,
	parseFields,
	placeOf,
	valuesOf,
} from './mime.js';
import type { ReturnedMessage } from './report.js';
import { recipientsIn, type TextRecipient } from './text-recipients.js';
import { machineWords, roleNames, separators, systemNames } from './wordings.js';

/**
 * The kind of sender, judged by the header alone. `role`: a postmaster, without signs of a person's mail program.
 * `machine`: another program. `unknown`: the header does not decide, as with an address without a name. `person`: the
 * sender has a name, or uses a mailing list or a mail program, or the mail is a reply or forwarded.
 */
export type Sender = 'system' | 'role' | 'machine' | 'unknown' | 'person';

export class Notice {
	readonly part: Part;
	readonly lines: readonly Line[];
	#recipients: readonly TextRecipient[] | null = null;

	constructor(part: Part, lines: readonly Line[]) {
		this.part = part;
		this.lines = lines;
	}

	get recipients(): readonly TextRecipient[] {
		this.#recipients ??= recipientsIn(this.lines, this.part);
		return this.#recipients;
	}
}

export class Extract {
	readonly mail: Mail;
	readonly sender: Sender;
	readonly subject: string;
	readonly notice: Notice | null;
	#returned: ReturnedMessage | null | undefined;

	constructor(mail: Mail) {
		this.mail = mail;
		this.sender = senderOf(mail);
		this.subject = subjectOf(mail);
		this.notice = findNotice(mail);
	}

	get returned(): ReturnedMessage | null {
		if (this.#returned === undefined) this.#returned = findReturned(this.mail);
		return this.#returned;
	}
}

function senderOf(mail: Mail): Sender {
	const from = decodeWords(fieldValue(mail.fields, 'from') ?? '').slice(0, 998);
	const path = fieldValue(mail.fields, 'return-path') ?? '';
	if (mail.fields.length === 0) return 'unknown';
	if (/<\s?>|(?:mailer-?daemon|post_master)@/i.test(from) || /^<?mailer-daemon\b/i.test(path))
		return 'system';
	// Some mailing lists have a name like that of a mail system.
	if (systemNames.test(from)) return lists.some((name) => has(mail, name)) ? 'machine' : 'system';
	if (roleNames.test(from)) return roleOf(mail);
	if (isPersonal(mail)) return 'person';
	const isReport = mail.type === 'multipart/report' || has(mail, 'x-failed-recipients');
	const isAutomatic = /^(?:auto-generated|auto-replied.{0,40}(?:reject|fail))/i.test(
		textOf(mail, 'auto-submitted'),
	);
	const names = from.replace(/@[^\s>]{0,255}/g, '');
	if (from === '') return path === '<>' ? 'system' : 'machine';
	if (path === '<>' || isReport || isAutomatic || machineWords.test(names)) return 'machine';
	return /^\s*<?[^\s<>"()]{1,320}>?\s*$/.test(from) ? 'unknown' : 'person';
}

function roleOf(mail: Mail): Sender {
	if (isForwarded(mail) || /^auto-replied\s*$/i.test(textOf(mail, 'auto-submitted'))) return 'person';
	return isAnswer(mail) || clients.test(programOf(mail)) ? 'unknown' : 'role';
}

const answers = /^\s*(?:re|aw|antw|sv|vs|odp|ynt|rif|回复|答复|返信)(?:\[\d{1,3}\])?\s?[:：]/i;
const forwards = /^[\s[]*(?:fwd?|wg|tr|rv|enc|i|转发|転送)(?:\[\d{1,3}\])?\s?[:：]/i;
/** Matches an outcome that some mail systems append to the original subject, as in `Re: Hello (undeliverable)`. */
const outcomeAtEnd = /[:(][^:()]{0,60}(?:deliver|remis|zustell|undeliver|returned|fail)[^:()]{0,60}\)?\s*$/i;
const programs =
	/smtp|server|daemon|gateway|filter|mime::|deliver|postmaster|mailsystem|exchange|internet mail service|spamlion|robot|php|perl|python|java/i;
const clients =
	/outlook|thunderbird|mozilla|apple mail|iphone|ipad|android|mutt|\bpine\b|alpine|kmail|evolution|eudora|lotus notes|gnus|mew\b|roundcube|horde|webmail|squirrelmail|the bat|airmail|claws|sylpheed|zimbra|pegasus|incredimail|becky/i;
const lists = 'list-id list-post list-unsubscribe mailing-list x-beenthere x-mailman-version'.split(' ');

function isPersonal(mail: Mail): boolean {
	const program = programOf(mail);
	return (
		isForwarded(mail) ||
		isAnswer(mail) ||
		[...lists, 'disposition-notification-to'].some((name) => has(mail, name)) ||
		/^(?:list|bulk)$/i.test(textOf(mail, 'precedence')) ||
		(program !== '' && (clients.test(program) || !programs.test(program)))
	);
}

function isAnswer(mail: Mail): boolean {
	const subject = subjectOf(mail);
	return has(mail, 'in-reply-to') || (answers.test(subject) && !outcomeAtEnd.test(subject));
}

function isForwarded(mail: Mail): boolean {
	return forwards.test(subjectOf(mail)) || has(mail, 'resent-from');
}

function programOf(mail: Mail): string {
	return textOf(mail, 'user-agent') || textOf(mail, 'x-mailer');
}

function has({ fields }: Mail, name: string): boolean {
	return findField(fields, name) !== null;
}

function subjectOf({ fields }: Mail): string {
	return decodeWords(fieldValue(fields, 'subject') ?? '').slice(0, 998);
}

function textOf({ fields }: Mail, name: string): string {
	return (fieldValue(fields, name) ?? '').slice(0, 998);
}

export function findNotice(mail: Mail): Notice | null {
	const texts = mail.parts.filter((part) => !part.isMultipart && !isReturned(part));
	const part =
		texts.find(({ type, body }) => type === 'text/plain' && body.trim() !== '') ??
		texts.find(({ type }) => type === 'text/html') ??
		// A multipart body without its boundary has no parts, so read it as text.
		texts.find(({ type, path }) => type.startsWith('multipart/') && path === '1') ??
		texts.find(({ type }) => type.startsWith('multipart/'));
	if (part === undefined) return null;
	const lines = part.type === 'text/html' ? visibleText(part.lines()) : part.lines();
	return new Notice(part, ownLines(lines));
}

export function aboutAddress(notice: Notice, address: string): TextRecipient | null {
	return notice.recipients.find((one) => isSame(one.address, address)) ?? null;
}

export function joinLines(lines: readonly Line[]): string {
	return lines
		.map(({ text }) => text.trim())
		.join(' ')
		.slice(0, 20_000);
}

/** RFC 6522 s.2 and RFC 6533 (`message/global`) define some of these types. Mail systems also use the others. */
const returnedTypes =
	/^(?:message\/(?:rfc822(?:-headers?)?|partial|global(?:-headers)?)|text\/rfc822-headers?)$/;

export function isReturned({ type }: Part): boolean {
	return returnedTypes.test(type);
}

function findReturned(mail: Mail): ReturnedMessage | null {
	for (const part of mail.parts.filter(isReturned)) {
		const fields = fieldsWithin(part);
		if (fields.length > 0) return returnedFrom(fields, placeOf(part));
	}
	const texts = mail.parts.filter((one) => !one.isMultipart && /^(?:text|multipart)\//.test(one.type));
	for (const text of texts) {
		const lines = text.lines();
		const fields = fieldsFrom(lines, endOfNotice(lines));
		const first = fields[0];
		if (fields.length >= 2 && first !== undefined)
			return returnedFrom(fields, placeOf({ ...text, line: first.line }));
	}
	return null;
}

export function ownLines(lines: readonly Line[]): readonly Line[] {
	return lines.slice(0, endOfNotice(lines));
}

/** Returns the index of the line where the returned message begins. */
function endOfNotice(lines: readonly Line[]): number {
	const known = ends.get(lines);
	if (known !== undefined) return known;
	const at = lines.findIndex(
		({ text }, index) =>
			separators.some((separator) => separator.test(text)) || (index > 2 && isTrace(lines, index)),
	);
	const end = at === -1 ? lines.length : at;
	ends.set(lines, end);
	return end;
}

/** Caches the results of `endOfNotice`, which saves a third of the time for a large mail. */
const ends = new WeakMap<readonly Line[], number>();

function isTrace(lines: readonly Line[], at: number): boolean {
	const isHeader = /^(?:Received|Return-Path|DKIM-Signature):\s?\S/i.test(lines[at]?.text ?? '');
	const before = lines[at - 1]?.text.trim() ?? '';
	return isHeader && (before === '' || !isFieldStart(before));
}

function fieldsFrom(lines: readonly Line[], end: number): Field[] {
	const rest = lines.slice(end);
	const first = rest.findIndex(({ text }) => isFieldStart(text));
	return first === -1 || first > 5 ? [] : parseFields(rest.slice(first));
}

function returnedFrom(fields: readonly Field[], place: ReturnedMessage['place']): ReturnedMessage {
	const subject = fieldValue(fields, 'subject');
	const ours = fields.filter(({ name }) => name.startsWith('x-')).slice(0, 100);
	return {
		message_id: messageId(fieldValue(fields, 'message-id')),
		subject: subject === null ? null : decodeWords(subject).slice(0, 998),
		to: addressesIn(decodeWords(valuesOf(fields, 'to'))),
		x_headers: Object.fromEntries(ours.map(({ name, value }) => [name, value.slice(0, 998)])),
		place,
	};
}

function messageId(value: string | null): string | null {
	return value === null ? null : (/<([^<>\s]{1,998})>/.exec(value)?.[1] ?? value.slice(0, 998));
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', nbsp: ' ' };

function visibleText(lines: readonly Line[]): Line[] {
	let hidden = false;
	return lines.flatMap(({ text, number }) => {
		const shown: string[] = [];
		for (const piece of text.split(/(<[^<>]{0,1000}>)/)) {
			if (/^<(?:style|script)\b/i.test(piece)) hidden = true;
			else if (/^<\/(?:style|script)\b/i.test(piece)) hidden = false;
			else if (/^<\/?(?:p|div|br|tr|td|li|h\d|table)\b/i.test(piece)) shown.push('\n');
			else if (!hidden && !/^<[a-z/!]/i.test(piece)) shown.push(piece);
		}
		return decoded(shown.join(''))
			.split('\n')
			.map((line) => ({ text: line, number }));
	});
}

function decoded(text: string): string {
	return text.replace(/&(lt|gt|amp|quot|nbsp|#\d{1,6});/gi, (whole, name: string) => {
		if (name.startsWith('#')) return String.fromCodePoint(Math.min(Number(name.slice(1)), 0xffff));
		return entities[name.toLowerCase()] ?? whole;
	});
}
