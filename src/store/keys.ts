import type { Micros } from '../api/datetime.js';

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
}

export interface WrappingKey {
	id: string;
	bytes: Uint8Array;
}

/** `fresh` is stored where no key exists, or the newest is older than `rotateAfter`. */
export interface KeyWanted {
	purpose: 'tracking';
	fresh: { id: number; secret: string };
	rotateAfter: Micros;
	now: Micros;
}
