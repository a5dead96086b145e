import type { Envelope } from '../api/messages.js';
import { oneLine } from '../api/variables.js';
import { fileFields, type Placed, type PlacedFile } from './attachments.js';
import { renderTemplate, type Template } from './fill-variables.js';
import { addressField, customField, dateField, tokenField, unstructuredField } from './header-fields.js';
import type { BodyValues, ByteSink, Part } from './part.js';
import type { Recipient } from './types.js';

interface MessageParts {
	text: Part | null;
	html: Part | null;
	sha256: string;
	files: Placed;
}

type WriteBody = (out: ByteSink, values: BodyValues) => void;

export interface MessageBody {
	write: WriteBody;
	rest: readonly (string | { sha256: string })[];
}

/** Text precedes HTML (RFC 2046 s.5.1.4). Nests mixed › alternative › related, and omits unneeded levels. */
export function compileBody({ text, html, sha256, files }: MessageParts): MessageBody {
	const parts = [text, html].filter((part) => part !== null);
	const bounded = (kind: string, mark: string, parameter = '') => {
		const boundary = absentBoundary(`${mark}${sha256.slice(mark.length, 32)}`, parts);
		const type = `Content-Type: multipart/${kind};${parameter} boundary="${boundary}"\r\n\r\n--${boundary}\r\n`;
		return { type, next: `\r\n--${boundary}\r\n`, end: `\r\n--${boundary}--\r\n` };
	};
	// No boundary may be a prefix of another. The marks m and r ensure that, because they are not hex digits.
	const mixed = files.attached.length > 0 ? bounded('mixed', 'm') : null;
	const related = files.inline.length > 0 ? bounded('related', 'r', ' type="text/html";') : null;
	const alternative = parts.length > 1 ? bounded('alternative', '') : null;
	const tail: (string | { sha256: string })[] = [];
	const addAll = (placed: readonly PlacedFile[], how: 'inline' | 'attachment', next: string) => {
		for (const file of placed) tail.push(`${next}${fileFields(file, how)}`, '\r\n', file);
	};
	if (related !== null) addAll(files.inline, 'inline', related.next);
	tail.push(`${related?.end ?? ''}${alternative?.end ?? ''}`);
	if (mixed !== null) addAll(files.attached, 'attachment', mixed.next);
	tail.push(mixed?.end ?? '');
	const [beforeFiles, rest] = splitTail(tail);
	const [first, second] = parts;
	const hasMore = mixed !== null || related !== null || alternative !== null;
	const opening = `${mixed?.type ?? ''}${alternative?.type ?? ''}`;
	const beforeHtml = `${alternative?.next ?? ''}${related?.type ?? ''}`;
	return {
		rest,
		write: (out, values) => {
			if (first === undefined) return out.text('\r\n');
			out.text(`${opening}${first === html ? beforeHtml : ''}${first.fields}\r\n`);
			first.write(out, values);
			if (second !== undefined) {
				out.text(`${beforeHtml}${second.fields}\r\n`);
				second.write(out, values);
			}
			if (hasMore) out.text(beforeFiles);
			else out.endLine();
		},
	};
}

type Tail = MessageBody['rest'];

function splitTail(tail: Tail): [before: string, rest: Tail] {
	const merged: (string | { sha256: string })[] = [];
	let before = '';
	let isBefore = true;
	for (const piece of tail) {
		if (typeof piece === 'string' && isBefore && piece !== '\r\n') before += piece;
		else {
			isBefore = false;
			const last = merged.at(-1);
			if (typeof piece === 'string' && typeof last === 'string') merged[merged.length - 1] = last + piece;
			else merged.push(typeof piece === 'string' ? piece : { sha256: piece.sha256 });
		}
	}
	return [before, merged];
}

interface SharedFields {
	from: string;
	copies: string;
	custom: string;
}

export function fieldWriter(): (subject: string, envelope: Envelope, recipient: Recipient) => string {
	const known = new WeakMap<Envelope, SharedFields>();
	let date = { ms: Number.NaN, field: '' };
	return (subject, envelope, recipient) => {
		let shared = known.get(envelope);
		if (shared === undefined) {
			shared = sharedFields(envelope);
			known.set(envelope, shared);
		}
		const { dateMs, to, messageId, listUnsubscribeUrl } = recipient;
		if (date.ms !== dateMs) date = { ms: dateMs, field: dateField(dateMs) };
		return (
			date.field +
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

export function compileSubject(template: Template): (variables: Recipient['variables']) => string {
	const write = (variables: Recipient['variables']) =>
		unstructuredField('Subject', oneLine(renderTemplate(template, variables, oneLine)));
	if (template.slots.length > 0) return write;
	const constant = write({});
	return () => constant;
}

/** Writes `List-Unsubscribe` (RFC 2369) without `mailto:`. Adds the one-click field for https only (RFC 8058). */
function unsubscribeFields(url: string): string {
	const link = tokenField('List-Unsubscribe', `<${url}>`);
	if (url.includes('<') || url.includes('>'))
		throw new Error('The unsubscribe link contains an angle bracket.');
	return /^https:/i.test(url) ? `${link}List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n` : link;
}

/** Only a 7bit part can contain `=_`. */
function absentBoundary(mark: string, parts: readonly Part[]): string {
	for (let attempt = 0; ; attempt++) {
		const boundary = `=_${mark}${attempt === 0 ? '' : `.${attempt}`}`;
		if (parts.every((part) => part.isFreeOf(boundary))) return boundary;
	}
}
