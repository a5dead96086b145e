/** What the checks of a database are given to judge: types, filled by whoever knows the store and the mail's parts. */
import type { Micros } from '../../api/datetime.js';
import type { QueueState } from '../../store/queue.js';
import type { SmtpTest } from '../connection.js';

/** A database as it was found. It is never made, migrated or written to. */
export type Inspected =
	| { kind: 'missing'; path: string }
	/** It is there and cannot be opened; `code` is that of the store's errors. */
	| { kind: 'closed'; path: string; code: string; message: string }
	| { kind: 'open'; path: string; database: InspectedDatabase };

/** An opened database; `close` it once. */
export interface InspectedDatabase {
	/** `found` 0: nothing has been stored in it yet. */
	schema: { found: number; known: number };
	journalMode: string;
	bytes: { file: number; log: number };
	/** SQLite's own words; none: sound. */
	findDamage(how: 'quick' | 'whole'): string[];
	/** Null where the schema is another one than this version's: then nothing of it can be read. */
	contents: DatabaseContents | null;
	close(): void;
}

/** What is in the database. Everything is read when it is asked for. */
export interface DatabaseContents {
	/** The latest moment anything was recorded at. */
	newest(): Promise<Micros | null>;
	settings(): Promise<InspectedSettings>;
	/** Their addresses. */
	senders(): Promise<string[]>;
	dkimKeys(): Promise<PublishedKey[]>;
	queue(): Promise<QueueState>;
	webhooks(): Promise<InspectedWebhook[]>;
	/** Messages of the last seven days. */
	lately(): Promise<{ sent: number; hardBounced: number }>;
	/** Connects and logs in as a worker would, until the signal. Throws where no mail server is set. */
	testSmtp(signal: AbortSignal): Promise<SmtpTest>;
}

/** The settings that can be wrong. */
export interface InspectedSettings {
	publicUrl: string | null;
	timeZone: string;
	bounceAddress: string | null;
	/** Null: none is set. */
	smtp: InspectedSmtp | null;
}

/** How the mail server is reached. */
export interface InspectedSmtp {
	host: string;
	port: number;
	security: 'never' | 'opportunistic' | 'required' | 'implicit';
	user: string | null;
	hasPassword: boolean;
	/** PEM of the authorities that alone vouch for it; null: those this machine trusts. */
	ca: string | null;
}

/** A key that signs, and the record that must be published for it. */
export interface PublishedKey {
	domain: string;
	selector: string;
	/** `selector._domainkey.domain`. */
	name: string;
	/** The text of the TXT record. */
	value: string;
}

/** A webhook with what waits for it. */
export interface InspectedWebhook {
	id: number;
	url: string;
	/** Since its target answered 410, with the notifications that wait for it; null: it did not. */
	stopped: { since: Micros; waiting: number } | null;
	/** Those that failed for good within a day, and those that were taken. */
	failedLately: number;
	deliveredLately: number;
	/** The oldest that was tried and waits for its next attempt; null: none. */
	oldestRetried: Retried | null;
}

/** A notification that its target did not take yet. */
export interface Retried {
	/** When it was made. */
	since: Micros;
	/** Null: it is being tried at this moment. */
	next: Micros | null;
	/** What the last attempt came to. */
	said: string;
	/** The webhook took something since that attempt: then it is this notification that it does not like. */
	tookOthersSince: boolean;
}
