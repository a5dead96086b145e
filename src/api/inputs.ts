import type { Attachment } from './attachments.js';
import type { fieldFields } from './fields.js';
import type { listFields } from './lists.js';
import { type Uuid, webhookTypes } from './records.js';
import { boolean, char, choice, email, type TextRule, url, withDefault } from './schema/fields.js';
import { texts } from './schema/texts.js';
import { fieldSet, type Given } from './schema.js';
import type { subscriberFields } from './subscribers.js';

export type ListInput = Given<typeof listFields>;
export type FieldInput = Given<typeof fieldFields>;
/** `meta` is an object here; the remote client sends it as a JSON string, as the document shows. */
export type SubscriberInput = Given<typeof subscriberFields>;

/** Service document, "Send a message". The last three keys are ours (api-decisions 24, 28). */
export interface SendRequest {
	type?: 'TRANSACTIONAL' | 'BULK';
	from: string | readonly string[];
	to: readonly string[];
	subject?: string;
	text_body?: string;
	html_body?: string;
	template_unique_id?: Uuid;
	reply_to?: readonly string[];
	cc?: readonly string[];
	bcc?: readonly string[];
	headers?: Readonly<Record<string, string>>;
	disable_inline?: boolean;
	disable_tracking?: boolean;
	context?: Readonly<Record<string, string>>;
	tag?: string;
	list_id?: number;
	campaign_unique_id?: Uuid;
	attachments?: readonly Attachment[];
}

/** Service document, "HTTP notifications". Assumption: login and password have at most 255 characters. */
export const webhookFields = fieldSet({
	url: url(),
	type: choice(webhookTypes),
	is_auth_enabled: withDefault(boolean(), () => false),
	login: withDefault(char({ max: 255, allowBlank: true }), () => ''),
	password: withDefault(char({ max: 255, allowBlank: true, trim: 'off' }), () => ''),
});
export type WebhookInput = Given<typeof webhookFields>;

/** Octets of UTF-8. Assumption: 2 MiB a body. */
export const maxBodyBytes = 2 * 1024 * 1024;

/** A text or HTML body: not trimmed; empty = no such part. */
const messageBody = char({ allowBlank: true, trim: 'off', maxBytes: maxBodyBytes });

export const templateFields = fieldSet({
	name: char({ max: 255 }),
	text_body: withDefault(messageBody, () => ''),
	html_body: withDefault(messageBody, () => ''),
});
export type TemplateInput = Given<typeof templateFields>;

/** The name becomes part of a header. */
const oneLine: TextRule = (value) =>
	/[\x01-\x1f\x7f-\x9f\u2028\u2029]/.test(value) ? { code: 'invalid', message: texts.value } : null;

export const senderFields = fieldSet({
	full_name: withDefault(char({ max: 255, allowBlank: true, rules: [oneLine] }), () => ''),
	from_email: email(),
	reply_to_email: withDefault(email({ allowBlank: true }), () => ''),
});
export type SenderInput = Given<typeof senderFields>;
