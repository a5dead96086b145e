/** The inputs that create or change a record. The validators beside each resource check the same shapes. */
import type { Attachment } from './attachments.js';
import type { Meta, Uuid, WebhookType } from './records.js';

/** Service document, "Lists": both are required to create and to replace. */
export interface ListInput {
	name: string;
	email_reason: string;
}

/** `meta` is an object here; the remote client sends it as a JSON string, as the document shows. */
export interface SubscriberInput {
	email: string;
	name?: string;
	meta?: Meta;
	is_active?: boolean;
}

/** Service document, "Additional fields". */
export interface FieldInput {
	variable: string;
	name: string;
}

/** Service document, "HTTP notifications". */
export interface WebhookInput {
	url: string;
	type: WebhookType;
	is_auth_enabled?: boolean;
	login?: string;
	password?: string;
}

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

/** A template; a missing body is empty. */
export interface TemplateInput {
	name: string;
	text_body?: string;
	html_body?: string;
}

/** Plain addresses, without a name. */
export interface SenderInput {
	from_email: string;
	full_name?: string;
	reply_to_email?: string;
}
