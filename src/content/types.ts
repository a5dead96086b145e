/** What compiling a content takes and yields. */
import type { Envelope } from '../api/content.js';

/** What differs from one recipient to the next. */
export interface Recipient {
	to: string;
	/** Without angle brackets: `<uuid>@<host>`. */
	messageId: string;
	/** Milliseconds since the epoch; the Date header. */
	dateMs: number;
	/** Values of variables, own keys only. A used variable that is missing stays as it is written. */
	variables: Readonly<Record<string, string>>;
	/** The addresses that tell of opens and clicks; null: the HTML goes out as it is written. */
	tracking: Tracking | null;
	/** Set on BULK: List-Unsubscribe (RFC 2369) and List-Unsubscribe-Post (RFC 8058) carry it. */
	listUnsubscribeUrl: string | null;
}

/** Where one message's pixel and links lead. */
export interface Tracking {
	/** The pixel's address. */
	openUrl: string;
	/** What the addresses of all links begin with, and what each ends with, by its position: `CompiledContent.links` of them. */
	clickUrl: string;
	clickEnds: readonly string[];
}

/** Inlines the CSS of an HTML document; rejects past its deadline or on hostile input. */
export type InlineCss = (html: string) => Promise<string>;

/** A content ready to be joined with recipients. Immutable; may be shared and cached. */
export interface CompiledContent {
	/** Names of the variables that occur, each once, in order of appearance. */
	readonly variables: readonly string[];
	/** Things the author should know: CSS that could not be inlined, for one. */
	readonly warnings: readonly string[];
	/** How many links of the HTML have a position: 0 to `links` − 1. */
	readonly links: number;
	/**
	 * Where the link at a position leads for these values: an absolute http or https URL in ASCII. Null when there is
	 * no such link, when it is anything but http(s) with these values, and when a value holds a control character.
	 * Exactly the links that `join` rewrites are not null.
	 */
	link(position: number, variables: Recipient['variables']): string | null;
	/** The finished message, RFC 5322 with CRLF, lines ≤ 998 octets, ready for DATA but not dot-stuffed. */
	join(envelope: Envelope, recipient: Recipient): Buffer;
	/** The parts as a person would read them, variables filled in, links as written and no pixel. */
	preview(recipient: Pick<Recipient, 'variables'>): { subject: string; text: string; html: string | null };
}
