import type { Micros } from '../api/datetime.js';
import type { MessageState } from '../api/records.js';

export type Kind = 'messages' | 'events' | 'bodies' | 'links' | 'subscribers' | 'figures' | 'other';

export interface Sizes extends Record<Kind, number> {
	free: number;
	is_estimate: boolean;
}

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
	stopped_webhooks: readonly { id: number; url: string; stopped_at: Micros }[];
}

export interface StoredErasures {
	keys: readonly StoredKey[];
	hashes: readonly { email_hash: string; key_id: number; erased_at: Micros }[];
}

export interface CountCheck {
	lists: WrongCounter[];
	figures: number;
	campaigns: string[];
}

export interface WrongCounter {
	list_id: number;
	name: string;
	active: { kept: number; counted: number };
	inactive: { kept: number; counted: number };
}

export const oldestPostgres = 13;

export interface ServerFacts {
	version: string;
	major: number;
	bytes: number;
	isReadOnly: boolean;
	synchronousCommit: string;
	standbys: string;
	replicas: number;
	connections: number;
	mostConnections: number;
	isEncrypted: boolean;
	ahead: Micros;
}

export interface StoredToken {
	name: string;
	scopes: string[];
	created_at: Micros;
	revoked_at: Micros | null;
}

export interface StoredDkimKey {
	domain: string;
	selector: string;
	type: 'rsa' | 'ed25519';
	secret: string;
	created_at: Micros;
}

export interface StoredKey {
	id: number;
	secret: string;
	created_at: Micros;
	/** Until this time, both this key and the newest key sign webhook calls. Null: the key is not retiring. */
	retires_at: Micros | null;
}

export interface WrappingKey {
	id: string;
	bytes: Uint8Array;
}

/** `ensureKey` stores `fresh` if no key exists, or if the newest key is older than `rotateAfter`. */
export interface KeyWanted {
	purpose: 'tracking';
	fresh: { id: number; secret: string };
	rotateAfter: Micros;
	now: Micros;
}
