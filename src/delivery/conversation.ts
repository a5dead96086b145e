/** What came of handing one message to a server, before anybody judges it. */
import type { Reply } from '../store/queue.js';

/** One message as the server gets it. Addresses are parsed, one a string, without angle brackets. */
export interface Mail {
	/** MAIL FROM; `''` is the null sender. */
	from: string;
	/** Whose message it is: this recipient's reply decides its fate. */
	to: string;
	/** Copies (cc and bcc) that ride along. */
	copies: readonly string[];
	/** RFC 5322 with CRLF, not dot-stuffed. */
	bytes: Buffer;
}

/**
 * `accepted`: 2xx after the final dot. `refused`: a reply said no, in `reply.phase`. `broken`: no usable reply; the
 * phase says how far it came, `answer` = the dot was written and nothing intelligible came back. `unsendable`: the
 * message itself cannot be said to this server (too large, needs SMTPUTF8); nothing was sent.
 */
export interface Conversation {
	kind: 'accepted' | 'refused' | 'broken' | 'unsendable';
	reply: Reply;
	/** Copies that the server refused while it took the message. */
	refusedCopies: readonly { to: string; reply: Reply }[];
}
