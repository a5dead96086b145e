/** The message that came back within a report: which one it was, and to whom it went. */
import { addressesIn } from './addresses.js';
import { decodeWords } from './decode.js';
import { type Field, fieldValue, isFieldStart, type Line, parseFields } from './fields.js';
import { separators } from './forms.js';
import { fieldsWithin, type Mail, type Part } from './mime.js';
import type { ReturnedMessage } from './report.js';

/** RFC 6522 s.2 and what is in use beside it; `message/global` is RFC 6533. */
const returnedTypes = new Set([
	'message/rfc822',
	'message/rfc822-headers',
	'message/rfc822-header',
	'text/rfc822-headers',
	'text/rfc822-header',
	'message/partial',
	'message/global',
	'message/global-headers',
]);

/** Whether a part holds the returned message, or its header. */
export function isReturned(part: Part): boolean {
	return returnedTypes.has(part.type);
}

/** The message returned as a part of its own, or behind a separator in the report's text; null when there is none. */
export function findReturned(mail: Mail): ReturnedMessage | null {
	for (const part of mail.parts.filter(isReturned)) {
		const fields = fieldsWithin(part);
		if (fields.length > 0) return returnedFrom(fields, { part: part.path, type: part.type, line: part.line });
	}
	// A multipart without parts: its boundary is nowhere to be found, and it is read as text.
	const texts = mail.parts.filter((one) => !one.isMultipart && /^(?:text|multipart)\//.test(one.type));
	for (const text of texts) {
		const lines = text.lines();
		const fields = fieldsFrom(lines, endOfNotice(lines));
		const first = fields[0];
		if (fields.length >= 2 && first !== undefined)
			return returnedFrom(fields, { part: text.path, type: text.type, line: first.line });
	}
	return null;
}

/** The lines that are the report's own: up to the returned message. */
export function ownLines(lines: readonly Line[]): readonly Line[] {
	return lines.slice(0, endOfNotice(lines));
}

/**
 * Index of the line where the report's own words end and the returned message begins: a separator, or a header that
 * stands in the text without one. The number of lines when nothing was returned.
 */
function endOfNotice(lines: readonly Line[]): number {
	const at = lines.findIndex(
		({ text }, index) =>
			separators.some((separator) => separator.test(text)) || (index > 2 && isTrace(lines, index)),
	);
	return at === -1 ? lines.length : at;
}

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
		to: addressesIn(
			fields
				.filter(({ name }) => name === 'to')
				.map(({ value }) => decodeWords(value))
				.join(' '),
		),
		x_headers: Object.fromEntries(ours.map(({ name, value }) => [name, value.slice(0, 998)])),
		place,
	};
}

function messageId(value: string | null): string | null {
	return value === null ? null : (/<([^<>\s]{1,998})>/.exec(value)?.[1] ?? value.slice(0, 998));
}
