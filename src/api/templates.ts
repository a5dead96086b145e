/** The input of a message template. */
import { char } from './schema/char.js';
import { withDefault } from './schema/field.js';
import { fieldSet } from './schema.js';

/** Octets of UTF-8. Assumption: 2 MiB a body. */
export const maxBodyBytes = 2 * 1024 * 1024;

/** A text or HTML body: not trimmed; empty = no such part. */
export const messageBody = char({ allowBlank: true, trim: 'off', maxBytes: maxBodyBytes });

/** `name` is the subject of messages made from the template. */
export const templateFields = fieldSet({
	name: char({ max: 255 }),
	text_body: withDefault(messageBody, () => ''),
	html_body: withDefault(messageBody, () => ''),
});
