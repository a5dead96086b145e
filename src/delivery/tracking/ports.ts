/** What the public pages need of the engine: plain data in, plain data out. */
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { TrackedEvent } from '../../store/store.js';
import type { Keyring } from './tokens.js';

/** What the pages record. */
export type Happened = TrackedEvent;

/** A message as its pages know it. */
export interface TrackedMessage {
	id: Uuid;
	/** `Name <a@b>` or `a@b`. */
	to: string;
	from: string;
	list_id: number | null;
	submission: Uuid;
	/** What the message brings; the built-in links are filled in by `link` and `view`. */
	variables: Readonly<Record<string, string>>;
}

/** What a message says to its recipient: links as they were written, no pixel. */
export interface MessageView {
	subject: string;
	text: string;
	/** Null: the message is text only. */
	html: string | null;
}

/** Everything rejects with the store's error when the store fails. */
export interface TrackingPorts {
	/** The keys that sign and verify; null: there are none yet, so no token is good. Asked on every request. */
	keyring(): Promise<Keyring | null>;
	/** Resolves when it is durable; an unknown message is skipped. */
	record(event: Happened): Promise<void>;
	find(message: Uuid): Promise<TrackedMessage | null>;
	/** The absolute http(s) URL behind a link of the message; null: it leads nowhere. */
	link(message: TrackedMessage, position: number): Promise<string | null>;
	/** Null: the content is gone. */
	view(message: TrackedMessage): Promise<MessageView | null>;
	/** The name of the list the message was sent to; null: to none, or it is deleted. */
	listName(message: TrackedMessage): Promise<string | null>;
	now(): Micros;
	/** Told what went wrong behind an answer that cannot say it: an event that is lost, a page that could not be shown. */
	failed?(error: unknown): void;
}
