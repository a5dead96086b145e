import type { Micros } from '../api/datetime.js';
import type { MessageState } from '../api/records.js';
import type { StoredKey } from './keys.js';

/** What takes room: messages with attempts and what became of them, single events, texts and files, links of old mails. */
export type Kind = 'messages' | 'events' | 'bodies' | 'links' | 'subscribers' | 'figures' | 'other';

/** In bytes, indexes included. `free`: room in the file that is used next. */
export interface Sizes extends Record<Kind, number> {
	free: number;
	is_estimate: boolean;
}

/** What goes next, about: rows, and the bytes that they take. */
export interface RetentionForecast {
	messages: number;
	events: number;
	bodies: number;
	bytes: number;
}

export interface StoreStatus {
	schema_version: number;
	size_bytes: number;
	lists: number;
	subscribers: number;
	suppressions: number;
	messages: Partial<Record<MessageState, number>>;
	/** Webhooks whose target answered 410, since when; they restart when they are changed or replayed. */
	stopped_webhooks: readonly { id: number; url: string; stopped_at: Micros }[];
}

export interface MaintenanceReads {
	status(): Promise<StoreStatus>;
	sizes(c: Record<never, never>): Promise<Sizes>;
	foreseeRetention(c: { values: Readonly<Record<string, string>>; now: Micros }): Promise<RetentionForecast>;
	/** Which messages `keep_messages` has deleted: those before a moment; null: none so far, or they stay for good. */
	deletedMessages(c: { now: Micros }): Promise<{ before_at: Micros; keep_messages: string } | null>;
	checkCounts(c: Record<never, never>): Promise<CountCheck>;
}

export interface MaintenanceWrites {
	/**
	 * For the copy of a database that takes its place, on which no other process works: messages whose delivery was under
	 * way become `uncertain`, and the queue is paused. `backup`: its file and time. `waiting`: messages that would be sent once it is resumed. `erasures`:
	 * of the original, null where they cannot be read; `erased`: persons who are in the copy and were erased since.
	 */
	settleRestored(c: {
		backup: string;
		erasures: StoredErasures | null;
		now: Micros;
	}): Promise<{ uncertain: number; waiting: number; erased: number }>;
	repairCounts(c: Record<never, never>): Promise<CountCheck>;
}

export interface StoredErasures {
	keys: readonly StoredKey[];
	hashes: readonly { email_hash: string; key_id: number; erased_at: Micros }[];
}

export interface CountCheck {
	lists: WrongCounter[];
	figures: number;
	/** Names of campaigns whose waiting messages are in no worker's sight. */
	campaigns: string[];
}

export interface WrongCounter {
	list_id: number;
	name: string;
	active: { kept: number; counted: number };
	inactive: { kept: number; counted: number };
}

/** The oldest PostgreSQL that serves: `pg_current_snapshot` came with it. */
export const oldestPostgres = 13;

/** The server of a database, as its settings and views tell (PostgreSQL manual, 20 and 28.2). `bytes`: the size of the database. */
export interface ServerFacts {
	version: string;
	major: number;
	bytes: number;
	isReadOnly: boolean;
	/** The commit waits for less than the disk where it is `off`. */
	synchronousCommit: string;
	/** Names of the replicas that a commit waits for; empty: none. */
	standbys: string;
	/** Replicas that follow it now, waited for or not. */
	replicas: number;
	connections: number;
	mostConnections: number;
	isEncrypted: boolean;
	/** The server's clock minus this machine's, as exact as half of a round trip. */
	ahead: Micros;
}
