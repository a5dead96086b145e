/** Keys and tokens as a store keeps them. */
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
	/** PKCS#8 DER in base64. */
	secret: string;
	created_at: Micros;
}

export interface StoredKey {
	id: number;
	/** base64url */
	secret: string;
	created_at: Micros;
}

export interface WrappingKey {
	/** Identifies a key without revealing it: the beginning of a hash. */
	id: string;
	/** 32 of them. */
	bytes: Uint8Array;
}

/** The key of a purpose: `fresh` is stored where there is none, or the newest is older than `rotateAfter`. */
export interface KeyWanted {
	purpose: 'tracking';
	fresh: { id: number; secret: string };
	rotateAfter: Micros;
	now: Micros;
}
