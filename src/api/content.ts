import type { Attachment } from './attachments.js';

export interface Content {
	subject: string;
	text: string | null;
	html: string | null;
	/** False: the service inlines CSS (api-decisions 26). */
	disable_inline: boolean;
	attachments?: readonly Attachment[];
}

/** The header fields that all recipients of one submission share. Addresses are checked, one per string. */
export interface Envelope {
	from: string;
	reply_to: readonly string[];
	cc: readonly string[];
	/** In the SMTP envelope only; never a header. */
	bcc: readonly string[];
	headers: Readonly<Record<string, string>>;
}
