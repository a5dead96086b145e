/** Input of the checks of a database: types, filled by the code that knows the store and the parts of mails. */
import type { Micros } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import type { ServerFacts } from '../../store/maintenance.js';
import type { QueueState } from '../../store/queue.js';
import type { SecretCount, SmtpTest } from '../frame/connection.js';
import { type Answer, type Check, problem, skipped } from './checks.js';

/** A database as it was found. It is never made, migrated or written to. */
export type Inspected =
	/** `unnamed`: an unreadable configuration may name another one than this default. */
	| { kind: 'missing' | 'unnamed'; path: string }
	/** It exists and cannot be opened; `code` is that of the store's errors. */
	| { kind: 'closed'; path: string; code: string; message: string }
	| { kind: 'open'; path: string; database: InspectedDatabase }
	| { kind: 'server'; path: string; database: InspectedServer };

/** An opened database; `close` it once. */
export interface InspectedDatabase {
	/** `found` 0: an empty database. */
	schema: { found: number; known: number };
	journalMode: string;
	bytes: { file: number; log: number };
	/** SQLite's own words; none: sound. */
	findDamage(how: 'quick' | 'whole'): string[];
	/** Null where the schema is not of this version: its contents are then unreadable. */
	contents: DatabaseContents | null;
	close(): void;
}

/** A database on a server; `close` it once. */
export interface InspectedServer extends Pick<InspectedDatabase, 'schema' | 'contents'> {
	server: ServerFacts;
	close(): Promise<void>;
}

/** The contents of the database. Each part is read when its method is called. */
export interface DatabaseContents {
	/** The latest moment anything was recorded at. */
	newest(): Promise<Micros | null>;
	/** How far the machine's clock was set last under a process that wrote, and when; null: it never was. */
	clockStep(): Promise<{ by: Micros; at: Micros } | null>;
	/** How far the clock of the database is ahead of the time that it has seen pass; 0: not far. */
	clockAhead(): Promise<Micros>;
	/** By the id of the key that wraps them; `null`: not wrapped. */
	secrets(): Promise<SecretCount[]>;
	settings(): Promise<InspectedSettings>;
	senders(): Promise<string[]>;
	dkimKeys(): Promise<PublishedKey[]>;
	queue(): Promise<QueueState>;
	webhooks(): Promise<InspectedWebhook[]>;
	/** Messages of the last seven days that were delivered or bounced. */
	lately(): Promise<{ attempted: number; hardBounced: number }>;
	/** Connects, logs in and names a sender as a worker would. Throws where no mail server is set. */
	testSmtp(signal: AbortSignal): Promise<SmtpTest>;
}

export interface InspectedSettings {
	publicUrl: string | null;
	timeZone: string;
	bounceAddress: string | null;
	/** Null: none is set. */
	smtp: InspectedSmtp | null;
}

export interface InspectedSmtp {
	host: string;
	port: number;
	security: 'never' | 'opportunistic' | 'required' | 'implicit';
	user: string | null;
	hasPassword: boolean;
}

/** A key that signs, and the record that must be published for it. */
export interface PublishedKey {
	domain: string;
	selector: string;
	/** `selector._domainkey.domain`. */
	name: string;
	value: string;
}

export interface InspectedWebhook {
	id: number;
	url: string;
	/** Since its target answered 410, with the notifications that wait for it; null: it did not. */
	stopped: { since: Micros; waiting: number } | null;
	failedLately: number;
	deliveredLately: number;
	/** The oldest that was tried and waits for its next attempt; null: none. */
	oldestRetried: Retried | null;
}

/** A notification that its target did not take yet. */
export interface Retried {
	since: Micros;
	/** Null: it is being tried at this moment. */
	next: Micros | null;
	/** The answer to the last attempt, or its error. */
	said: string;
	/** The webhook took something since that attempt: then it is this notification that it does not like. */
	tookOthersSince: boolean;
}

/** Makes a check out of a question to the contents; it is skipped where they cannot be read. */
export type OfContents = (judge: (contents: DatabaseContents) => Answer | Promise<Answer>) => Check['run'];

/** Damage is a problem of the first check that meets it; others are skipped for it. */
export function ofContents(found: Inspected): OfContents {
	let isDamaged = false;
	return (judge) => async () => {
		if (!('database' in found)) return noContents(found);
		const { contents } = found.database;
		if (contents === null) return skipped('its schema is another one than this version has');
		try {
			return await judge(contents);
		} catch (error) {
			if (!(error instanceof StoreError) || error.code !== 'damaged') throw error;
			if (isDamaged) return skipped('the database file is damaged');
			isDamaged = true;
			return problem(`this could not be looked at: ${error.message}`);
		}
	};
}

/** `database.file` or `database.server` has the reason. */
export function noContents({ kind }: Inspected) {
	return skipped(kind === 'closed' ? 'the database cannot be opened' : 'there is no database to look into');
}
