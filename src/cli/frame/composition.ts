/** Messages composed for display before they are sent. */

import type { Attachment } from '../../api/attachments.js';

/** A file of a message, before it is uploaded. */
export interface FileToSend extends Attachment {
	bytes: Buffer;
}

/** A message to display: nothing of it is stored. */
export interface ComposeRequest {
	from: string;
	to: string;
	subject: string;
	text: string | null;
	html: string | null;
	disable_inline: boolean;
	bulk: boolean;
	reply_to: readonly string[];
	cc: readonly string[];
	headers: Readonly<Record<string, string>>;
	variables: Readonly<Record<string, string>>;
	/** Absent: none. */
	files?: readonly FileToSend[];
}

/** The parts of a content as a person reads them. */
export interface RenderedContent {
	subject: string;
	text: string;
	html: string | null;
	/** Variables used that have no value. */
	missing: readonly string[];
}

/** A finished message: its bytes (RFC 5322), and its parts. */
export interface ComposedMessage extends RenderedContent {
	from: string;
	to: string;
	raw: Buffer;
	/** The same with nothing in the place of each file. */
	withoutFiles: Buffer;
	warnings: readonly string[];
	/** Names the stand-ins for parts that only the deployment can make; null: the message is final. */
	standsIn: string | null;
	/** Absent: none. */
	files?: readonly FileToSend[];
}
