/** Keys and tokens as a store keeps them. */
import type { Micros } from '../api/datetime.js';

/** A token without its secret. */
export interface StoredToken {
	name: string;
	scopes: string[];
	created_at: Micros;
	revoked_at: Micros | null;
}

/** A key that signs mails from addresses of a domain. */
export interface StoredDkimKey {
	/** In ASCII and lower case. */
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
