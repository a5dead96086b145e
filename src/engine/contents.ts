/** From what a caller asks to be sent to the content that is stored: template, sender, links, variables. */

import type { Content } from '../api/content.js';
import { ApiError, type FieldErrors, invalid } from '../api/errors.js';
import type { Uuid } from '../api/records.js';
import { contentSha256 } from '../content/hash.js';
import { usedVariables } from '../content/variable-names.js';
import type { EngineContext } from './context.js';
import { readSettings } from './settings.js';

/** The parts of a send request that decide what is said and by whom; shapes are checked already. */
export interface Wanted {
	from_key: string;
	type: 'TRANSACTIONAL' | 'BULK';
	subject: string | null;
	text_body: string | null;
	html_body: string | null;
	template_unique_id: Uuid | null;
	disable_inline: boolean;
}

/** What will be stored: the content, its hash, the variables it uses. */
export interface ResolvedContent {
	content: Content;
	content_sha256: string;
	variables: readonly string[];
}

/**
 * Reads the template, and refuses with every complaint at once: an unverified sender, an unknown template, bulk mail
 * whose links would lead nowhere. The sender is compared once more inside the operation that accepts.
 */
export async function resolveContent({ store }: EngineContext, wanted: Wanted): Promise<ResolvedContent> {
	const [template, sender, settings] = await Promise.all([
		wanted.template_unique_id === null ? null : store.reads.getTemplate({ id: wanted.template_unique_id }),
		store.reads.findSender({ email_key: wanted.from_key }),
		readSettings(store),
	]);
	const errors: FieldErrors = {};
	if (sender === null) errors['from'] = [{ code: 'invalid', message: 'Sender address is not verified.' }];
	if (wanted.template_unique_id !== null && template === null) {
		errors['template_unique_id'] = [{ code: 'does_not_exist', message: 'Template not found.' }];
	}
	if (wanted.type === 'BULK' && settings.publicUrl === null && !isLoopbackSmtp(settings.smtpUrl)) {
		errors['type'] = [
			{
				code: 'invalid',
				message: 'BULK needs the public URL of the settings: unsubscribe links would lead nowhere.',
			},
		];
	}
	if (Object.keys(errors).length > 0) throw invalid(errors);
	const content: Content =
		template === null
			? {
					subject: wanted.subject ?? '',
					text: wanted.text_body,
					html: wanted.html_body,
					disable_inline: wanted.disable_inline,
				}
			: {
					subject: template.name,
					text: emptyAsNull(template.text_body),
					html: emptyAsNull(template.html_body),
					disable_inline: wanted.disable_inline,
				};
	return { content, content_sha256: contentSha256(content), variables: usedVariables(content) };
}

/** True when mail goes no further than this machine: a trial, whose links may point here too. */
export function isLoopbackSmtp(smtpUrl: string | null): boolean {
	if (smtpUrl === null || !URL.canParse(smtpUrl)) return false;
	const host = new URL(smtpUrl).hostname.replace(/^\[|\]$/g, '');
	return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** The same key was used for another body (draft-ietf-httpapi-idempotency-key-header: 422). */
export function keyConflict(): ApiError {
	return new ApiError('unprocessable', 'This Idempotency-Key was used for another request.');
}

function emptyAsNull(text: string): string | null {
	return text === '' ? null : text;
}
