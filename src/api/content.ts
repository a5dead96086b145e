/** The content and the addressing of a message, before any processing. */
import type { Attachment } from './attachments.js';

/** The bodies and the subject as written, with their `#name#` variables; `null` = no such part. */
export interface Content {
	subject: string;
	text: string | null;
	html: string | null;
	/** False: the service inlines CSS (api-decisions 26). */
	disable_inline: boolean;
	/** In their order; absent: none. */
	attachments?: readonly Attachment[];
}

/** The header fields that all recipients of one submission share. Addresses are checked, one per string. */
export interface Envelope {
	/** `Name <a@b>` or `a@b`. */
	from: string;
	reply_to: readonly string[];
	cc: readonly string[];
	/** In the SMTP envelope only; never a header. */
	bcc: readonly string[];
	headers: Readonly<Record<string, string>>;
}
