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
	/** Set on BULK: List-Unsubscribe (RFC 2369) and List-Unsubscribe-Post (RFC 8058) carry it. */
	listUnsubscribeUrl: string | null;
}

/** Inlines the CSS of an HTML document; rejects past its deadline or on hostile input. */
export type InlineCss = (html: string) => Promise<string>;

/** A content ready to be joined with recipients. Immutable; may be shared and cached. */
export interface CompiledContent {
	/** Names of the variables that occur, each once, in order of appearance. */
	readonly variables: readonly string[];
	/** Things the author should know: CSS that could not be inlined, for one. */
	readonly warnings: readonly string[];
	/** The finished message, RFC 5322 with CRLF, lines ≤ 998 octets, ready for DATA but not dot-stuffed. */
	join(envelope: Envelope, recipient: Recipient): Buffer;
	/** The parts as a person would read them, variables filled in; for `--preview`. */
	preview(recipient: Pick<Recipient, 'variables'>): { subject: string; text: string; html: string | null };
}
