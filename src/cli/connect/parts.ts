/** What the parts of an embedded engine share. */
import { randomBytes } from 'node:crypto';
import type { Store } from '../../store/store.js';
import type { ConnectDependencies } from '../connection.js';

/** What the lazily loaded parts are made from. */
export interface LocalParts extends ConnectDependencies {
	store: Store;
	path: string;
	isNew: boolean;
	presence: Presence;
}

/** What a running server changes about its engine. */
export interface Presence {
	/** Why the sending worker of this process sends nothing at the moment. */
	whyPaused: () => string | null;
	/** Told when a thread of the store has ended: nothing can be answered any more. */
	storeFailed: (error: Error) => void;
}

/** A secret of the keyring: 256 bits, its id random so that two databases do not share one. */
export function freshKey(): { id: number; secret: string } {
	return { id: randomBytes(4).readUInt32BE(), secret: randomBytes(32).toString('base64url') };
}
