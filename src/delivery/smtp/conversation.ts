/** The result of handing one message to a server, before its classification. */
import type { Reply } from '../../engine/rules/outcomes.js';

/** One message for the server. Addresses are parsed, one in each string, without angle brackets. */
export interface Mail {
	/** MAIL FROM; `''` is the null sender. */
	from: string;
	/** The recipient of the message: this recipient's reply decides its outcome. */
	to: string;
	/** Copies (cc and bcc) in the same transaction. */
	copies: readonly string[];
	/** RFC 5322 with CRLF, not dot-stuffed; the beginning of it where there is a `rest`. */
	bytes: Buffer;
	/** What follows, in pieces that mails share: lines without a dot at their beginning, in ASCII. Absent: nothing. */
	rest?: readonly Buffer[];
}

/** Octets of the whole message. */
export function sizeOf({ bytes, rest = [] }: Pick<Mail, 'bytes' | 'rest'>): number {
	return rest.reduce((sum, { length }) => sum + length, bytes.length);
}

/**
 * `accepted`: 2xx after the final dot. `refused`: a negative reply, in `reply.phase`. `broken`: no usable reply; the
 * phase says how far it came, `answer` = the dot was written and no intelligible reply came. `unsendable`: this server
 * cannot take the message (too large, needs SMTPUTF8); nothing was sent.
 */
export interface Conversation {
	kind: 'accepted' | 'refused' | 'broken' | 'unsendable';
	reply: Reply;
	/** Copies that the server refused while it accepted the message. */
	refusedCopies: readonly { to: string; reply: Reply }[];
}
