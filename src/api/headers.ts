/** Which header fields a caller may add to a message, and what they may say. */
import type { FieldError } from './errors.js';
import { char } from './schema/char.js';
import { dict } from './schema/containers.js';
import { type Checked, type Field, valid } from './schema/field.js';

/** Assumption: enough for any purpose, and too few to be a burden. */
export const maxHeaders = 64;

/** RFC 5322 s.2.1.1: a line has at most 998 characters; the name, colon and space are part of it. */
export const maxHeaderLine = 998;

// RFC 5322 s.3.6.8: ftext, printable ASCII but the colon.
const headerName = /^[!-9;-~]+$/;
const forbiddenText = /[\0-\x08\n-\x1f\x7f]/;

// The service writes these itself, or they would add recipients, forge a trace or change what the body is.
const reserved: ReadonlySet<string> = new Set([
	'from',
	'to',
	'cc',
	'bcc',
	'sender',
	'reply-to',
	'subject',
	'date',
	'message-id',
	'return-path',
	'received',
]);
const reservedPrefixes = ['mime-', 'content-', 'dkim-', 'arc-', 'resent-', 'list-unsubscribe'];

/** Header fields by name, values kept as written. Complaints are keyed by name. */
export function headers(): Field<Record<string, string>, 'required'> {
	return dict(char({ trim: 'off' }), { check: checkHeader, max: maxHeaders });
}

/** Whether the service keeps this header field for itself, without regard to case. */
export function isReservedHeader(name: string): boolean {
	const lower = name.toLowerCase();
	return reserved.has(lower) || reservedPrefixes.some((prefix) => lower.startsWith(prefix));
}

function checkHeader(name: string, value: string): Checked<string> {
	const errors: FieldError[] = [];
	const complain = (message: string) => errors.push({ code: 'invalid', message });
	if (!headerName.test(name)) complain('This is not a valid header name.');
	else if (isReservedHeader(name)) complain('This header may not be set.');
	if (forbiddenText.test(value)) complain('A header may not contain line breaks or control characters.');
	if (name.length + 2 + value.length > maxHeaderLine) {
		errors.push({ code: 'max_length', message: `A header may have at most ${maxHeaderLine} characters.` });
	}
	return errors.length === 0 ? valid(value) : { kind: 'invalid', errors };
}
