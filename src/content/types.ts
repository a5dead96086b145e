/** Input and output of the compiler. */
import type { Envelope } from '../api/messages.js';
import type { ReadHtml } from './read-html.js';

export interface Recipient {
	to: string;
	/** Without angle brackets: `<uuid>@<host>`. */
	messageId: string;
	/** Milliseconds since the epoch; the Date header. */
	dateMs: number;
	/** Values of variables, own keys only. A used variable without a value stays as it is written. */
	variables: Readonly<Record<string, string>>;
	/** The addresses that record opens and clicks; null: the HTML goes out as it is written. */
	tracking: Tracking | null;
	/** Set on BULK: List-Unsubscribe (RFC 2369) and of an https one List-Unsubscribe-Post (RFC 8058) carry it. */
	listUnsubscribeUrl: string | null;
}

export interface Tracking {
	openUrl: string;
	/**
	 * The common beginning of all links' addresses, and the end of each, by its position: `CompiledContent.links` of them.
	 */
	clickUrl: string;
	clickEnds: readonly string[];
}

/** A content ready to be joined with recipients. Immutable; may be shared and cached. */
export interface CompiledContent {
	/** Names of the variables, each once, in order of appearance. */
	readonly variables: readonly string[];
	/** Notes for the author, such as CSS that could not be inlined. */
	readonly warnings: readonly string[];
	/** The parsed HTML, from which another thread compiles the same content; null without HTML. */
	readonly read: ReadHtml | null;
	/** The number of links with a position: 0 to `links` − 1. */
	readonly links: number;
	/**
	 * The target of the link at a position for these values: an absolute http or https URL in ASCII. Null without such a
	 * link, when it is anything but http(s) with these values, and when a value contains a control character. Exactly the
	 * links that `join` rewrites are not null.
	 */
	link(position: number, variables: Recipient['variables']): string | null;
	/**
	 * The finished message, RFC 5322 with CRLF, lines ≤ 998 octets, ready for DATA but not dot-stuffed. Throws before
	 * joining a message that would be too large, and on a header field that cannot be written. It lies at the beginning of
	 * `memory` where that has room for it, else in memory of its own.
	 */
	join(envelope: Envelope, recipient: Recipient, memory?: Buffer): Buffer;
	/**
	 * The end of the message that all recipients share, where `join` leaves it out: the files, by their hashes as
	 * `encodeFile` made them. Empty without files. ASCII with CRLF, and in the relaxed form of DKIM.
	 */
	rest(encoded: ReadonlyMap<string, Buffer>, recipient: Pick<Recipient, 'tracking'>): readonly Buffer[];
	/** The parts for a reader, variables filled in, links as written and without the pixel. Throws as `join` does. */
	preview(recipient: Pick<Recipient, 'variables'>): { subject: string; text: string; html: string | null };
}
