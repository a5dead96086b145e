import type { Envelope } from '../api/messages.js';
import type { ReadHtml } from './read-html.js';

export interface Recipient {
	to: string;
	messageId: string;
	dateMs: number;
	variables: Readonly<Record<string, string>>;
	tracking: Tracking | null;
	listUnsubscribeUrl: string | null;
}

export interface Tracking {
	openUrl: string;
	clickUrl: string;
	clickEnds: readonly string[];
}

export interface CompiledContent {
	readonly variables: readonly string[];
	readonly warnings: readonly string[];
	readonly read: ReadHtml | null;
	readonly links: number;
	/** Estimated memory of the compiled content. */
	readonly bytes: number;
	/** Null unless the link is http(s). `join` rewrites exactly the links that are not null. */
	link(position: number, variables: Recipient['variables']): string | null;
	/** Not dot-stuffed. Uses `memory` if the message fits. Throws before it joins a message that would be too large. */
	join(envelope: Envelope, recipient: Recipient, memory?: Buffer): Buffer;
	/** The files that follow `join`, in DKIM's relaxed form. `encoded` maps hashes to the results of `encodeFile`. */
	rest(encoded: ReadonlyMap<string, Buffer>, recipient: Pick<Recipient, 'tracking'>): readonly Buffer[];
	/** The message with links as written and without pixel. Throws like `join`. */
	preview(recipient: Pick<Recipient, 'variables'>): { subject: string; text: string; html: string | null };
}
