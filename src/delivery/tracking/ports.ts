/** The engine as the public pages use it: plain data in, plain data out. */
import type { AttachedFile } from '../../api/attachments.js';
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { TrackedEvent } from '../../store/store.js';
import type { Keyring } from './tokens.js';

/** The events that the pages record. */
export type Happened = TrackedEvent;

/** A message as its pages know it. */
export interface TrackedMessage {
	id: Uuid;
	/** `Name <a@b>` or `a@b`. */
	to: string;
	from: string;
	list_id: number | null;
	submission: Uuid;
	/** The message's own values; `link` and `view` fill in the built-in links. */
	variables: Readonly<Record<string, string>>;
	/** What came with it; absent: nothing. */
	files?: readonly AttachedFile[];
}

/** The content of a message for its recipient: links as they were written, no pixel. */
export interface MessageView {
	subject: string;
	text: string;
	/** Null: the message is text only. */
	html: string | null;
}

/** The settings for the look of the pages. */
export interface Branding {
	/** Null: pages name the sender of the mail. */
	name: string | null;
	/** An https URL or a data URI; null: none. */
	logo: string | null;
	/** `#rrggbb`: of buttons, and by it of links. */
	color: string;
}

/** Without settings. */
export const unbranded: Branding = { name: null, logo: null, color: '#1d4ed8' };

/** All reject with the store's error when the store fails. */
export interface TrackingPorts {
	/** The keys that sign and verify; null: there are none yet, so every token is invalid. Called on every request. */
	keyring(): Promise<Keyring | null>;
	/** Resolves when it is durable; an unknown message is skipped. */
	record(event: Happened): Promise<void>;
	find(message: Uuid): Promise<TrackedMessage | null>;
	/** The absolute http(s) URL behind a link of the message; null: it has no target. */
	link(message: TrackedMessage, position: number): Promise<string | null>;
	/** Null: the content is gone. */
	view(message: TrackedMessage): Promise<MessageView | null>;
	/**
	 * The name, the public one where there is one, of the list that a person may leave alone. Null: there is none, it is deleted, or the setting
	 * `unsubscribe_scope` makes unsubscribing apply to all lists.
	 */
	listName(message: TrackedMessage): Promise<string | null>;
	branding(): Promise<Branding>;
	now(): Micros;
	/** Reports an error that the answer cannot show: a lost event, a page that could not be shown. */
	failed?(error: unknown): void;
}
