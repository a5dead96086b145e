import type { Call } from './api.js';
import { type ApiError, type FieldErrors, invalid } from './errors.js';
import * as f from './schema/fields.js';
import * as t from './schema/record.js';
import { fieldSet, type Infer } from './schema.js';

export const maxAttachments = 100;
/** Bytes of all files of a message, before transfer encoding. Few mail servers accept a mail over 25 MB. */
export const maxAttachedBytes = 20 * 1024 * 1024;

export const AttachedFile = t.component('AttachedFile', {
	name: t.text,
	type: t.text,
	sha256: t.text,
	size: t.count,
	content_id: t.optional(t.text),
});
export type AttachedFile = Infer<typeof AttachedFile>;

export const StoredBytes = t.component('StoredBytes', { sha256: t.needed(t.text), size: t.needed(t.count) });
export type StoredBytes = Infer<typeof StoredBytes>;

/** The store deletes uploaded bytes 24 hours after their last upload if no message uses them. */
export interface Attachments {
	find(sha256: string, call?: Call): Promise<StoredBytes>;
	put(sha256: string, bytes: Uint8Array, call?: Call): Promise<StoredBytes>;
}

const sha256Pattern = /^[0-9a-f]{64}$/;

export function isSha256(text: string): boolean {
	return sha256Pattern.test(text);
}

export function nameFault(name: string): string | null {
	if (name.trim() === '' || name === '.' || name === '..') return 'This is not a file name.';
	if (/[\p{Cc}\u2028\u2029]/u.test(name)) return 'A file name may not contain control characters.';
	return /[/\\]/.test(name) ? 'A file name may not contain / or \\.' : null;
}

const mediaType = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/i;
/** RFC 2046 s.5 forbids base64 for these types. */
const composite = /^(?:message|multipart)\//i;

const attachmentFields = fieldSet({
	name: f.char({
		max: 255,
		trim: 'off',
		rules: [
			(name) => {
				const message = nameFault(name);
				return message === null ? null : { code: 'invalid', message };
			},
		],
	}),
	type: f.char({
		rules: [
			(type) => {
				if (!mediaType.test(type))
					return { code: 'invalid', message: 'Use a media type, such as application/pdf.' };
				if (!composite.test(type)) return null;
				return { code: 'invalid', message: 'To attach a mail, use application/octet-stream.' };
			},
		],
	}),
	sha256: f.pattern(sha256Pattern, { trim: 'off' }),
	content_id: f.optional(f.pattern(/^[!#-;=?-~]{1,255}$/, { trim: 'off' })),
});
export type Attachment = Infer<typeof attachmentFields>;

export function attachments(): f.Field<Attachment[], 'required', readonly Attachment[]> {
	return f.list(attachment(), { max: maxAttachments });
}

function attachment(): f.Field<Attachment, 'required'> {
	return f.field(attachmentFields.jsonSchema(), (input) => {
		const parsed = attachmentFields.parse(input, 'create');
		if (parsed.kind === 'invalid') return { kind: 'invalid', errors: parsed.errors };
		const { type, ...rest } = parsed.value;
		return { kind: 'valid', value: { ...rest, type: type.toLowerCase() } };
	});
}

export function sizeFault(sizes: readonly number[]): FieldErrors | null {
	const bytes = sizes.reduce((sum, size) => sum + size, 0);
	if (bytes <= maxAttachedBytes) return null;
	const message = `The files have ${bytes.toLocaleString('en-US')} bytes together; at most ${maxAttachedBytes.toLocaleString('en-US')} are allowed.`;
	return { attachments: [{ code: 'too_large', message }] };
}

export function notUploaded(sha256: string): FieldErrors {
	const message = `Nothing was uploaded for ${sha256}.`;
	return { attachments: [{ code: 'does_not_exist', message }] };
}

export function otherBytes(): ApiError {
	return invalid({ sha256: [{ code: 'invalid', message: 'The bytes do not match this hash.' }] });
}
