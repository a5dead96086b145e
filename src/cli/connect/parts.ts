/** Shared types and helpers of the parts of an embedded engine. */
import { randomBytes } from 'node:crypto';
import type { WrappingKey } from '../../store/keys.js';
import type { Store } from '../../store/store.js';
import type { ConnectDependencies } from '../frame/connection.js';

/** The dependencies of the lazily loaded parts. */
export interface LocalParts extends ConnectDependencies {
	store: Store;
	/** For people: the file, or the URL without its password. */
	path: string;
	/** Where the first token of `serve` is written. */
	tokenFile: string;
	isNew: boolean;
	keys: readonly WrappingKey[];
	presence: Presence;
}

/** The changes a running server makes to its engine. */
export interface Presence {
	/** The obstacle to sending in this process; null without one. */
	whyPaused: () => string | null;
	/** Called when a thread of the store has ended: no request can be answered then. */
	storeFailed: (error: Error) => void;
}

/** A secret of the keyring: 256 bits, its id random so that two databases do not share one. */
export function freshKey(): { id: number; secret: string } {
	return { id: randomBytes(4).readUInt32BE(), secret: randomBytes(32).toString('base64url') };
}
