/** The finished message: header fields, then one part or two alternatives. */
import type { Envelope } from '../api/content.js';
import type { ByteSink } from './byte-sink.js';
import { oneLine, renderTemplate, type Template } from './fill-variables.js';
import { addressField, customField, dateField, tokenField, unstructuredField } from './header-fields.js';
import type { BodyValues, Part } from './part.js';
import type { Recipient } from './types.js';

/** The constant parts of all messages of one content. */
export interface MessageParts {
	/** The html is null, or the text is, or neither. */
	text: Part | null;
	html: Part | null;
	/** Identity of the content: its boundary is made from it, so the same content gives the same bytes. */
	sha256: string;
}

/** Writes the Content-Type and the body of a message for a recipient. */
export type WriteBody = (out: ByteSink, values: BodyValues) => void;

/** Lays out the parts, text first (RFC 2046 s.5.1.4: the last alternative is the preferred one). */
export function compileBody({ text, html, sha256 }: MessageParts): WriteBody {
	if (text === null || html === null) {
		const only = text ?? html;
		if (only === null) return (out) => out.text('\r\n');
		return (out, values) => {
			out.text(`${only.fields}\r\n`);
			only.write(out, values);
			out.endLine();
		};
	}
	const boundary = absentBoundary(sha256, [text, html]);
	const head = `Content-Type: multipart/alternative; boundary="${boundary}"\r\n\r\n--${boundary}\r\n${text.fields}\r\n`;
	const middle = `\r\n--${boundary}\r\n${html.fields}\r\n`;
	const end = `\r\n--${boundary}--\r\n`;
	return (out, values) => {
		out.text(head);
		text.write(out, values);
		out.text(middle);
		html.write(out, values);
		out.text(end);
	};
}

/** The fields that all messages of an envelope share. */
interface SharedFields {
	from: string;
	copies: string;
	custom: string;
}

/**
 * Writes everything above the Content-Type. Fields that all messages of an envelope share are made once, as long as the
 * same object is given. Throws on a line break or NUL in any field, and on a field that users may not set.
 */
export function fieldWriter(): (subject: string, envelope: Envelope, recipient: Recipient) => string {
	const known = new WeakMap<Envelope, SharedFields>();
	return (subject, envelope, recipient) => {
		let shared = known.get(envelope);
		if (shared === undefined) {
			shared = sharedFields(envelope);
			known.set(envelope, shared);
		}
		const { dateMs, to, messageId, listUnsubscribeUrl } = recipient;
		return (
			dateField(dateMs) +
			shared.from +
			addressField('To', [to]) +
			shared.copies +
			subject +
			tokenField('Message-ID', `<${messageId}>`) +
			(listUnsubscribeUrl === null ? '' : unsubscribeFields(listUnsubscribeUrl)) +
			shared.custom
		);
	};
}

function sharedFields({ from, cc, reply_to, headers }: Envelope): SharedFields {
	const custom = Object.entries(headers).map(([name, value]) => customField(name, value));
	return {
		from: addressField('From', [from]),
		copies: addressField('Cc', cc) + addressField('Reply-To', reply_to),
		custom: `${custom.join('')}MIME-Version: 1.0\r\n`,
	};
}

/** The Subject field; written once when it has no variables. */
export function compileSubject(template: Template): (variables: Recipient['variables']) => string {
	const write = (variables: Recipient['variables']) =>
		unstructuredField('Subject', oneLine(renderTemplate(template, variables, oneLine)));
	if (template.slots.length > 0) return write;
	const constant = write({});
	return () => constant;
}

/** RFC 2369 and RFC 8058: the mail program may unsubscribe with one POST. */
function unsubscribeFields(url: string): string {
	if (/[<>\s]/.test(url)) throw new Error('The unsubscribe link holds a blank or an angle bracket.');
	const link = tokenField('List-Unsubscribe', `<${url}>`);
	return `${link}List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n`;
}

/** `=_` never occurs in quoted-printable or base64; in a 7bit part, which is constant, its absence is checked. */
function absentBoundary(sha256: string, parts: readonly Part[]): string {
	for (let attempt = 0; ; attempt++) {
		const boundary = `=_${sha256.slice(0, 32)}${attempt === 0 ? '' : `.${attempt}`}`;
		if (parts.every((part) => part.isFreeOf(boundary))) return boundary;
	}
}
