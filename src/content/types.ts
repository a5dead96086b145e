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
	/** An estimate of the memory that it takes. */
	readonly bytes: number;
	/** Null for anything but http(s): exactly the links that `join` rewrites are not null. */
	link(position: number, variables: Recipient['variables']): string | null;
	/** Not dot-stuffed; in `memory` if it fits. Throws before it joins a message that would be too large. */
	join(envelope: Envelope, recipient: Recipient, memory?: Buffer): Buffer;
	/** The files after `join`, by hash as `encodeFile` made them; in the relaxed form of DKIM. */
	rest(encoded: ReadonlyMap<string, Buffer>, recipient: Pick<Recipient, 'tracking'>): readonly Buffer[];
	/** For a reader: links as written, no pixel. Throws as `join` does. */
	preview(recipient: Pick<Recipient, 'variables'>): { subject: string; text: string; html: string | null };
}
