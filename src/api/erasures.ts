/** Persons who want to be forgotten: ours, not the service document's. */
import type { Call } from './api.js';

/** What an erasure did: rows deleted or emptied. */
export interface Erasure {
	/** Subscribers deleted, in all lists. */
	subscribers: number;
	/** Messages whose address, variables and replies were emptied. */
	messages: number;
	/** Of these, how many were waiting and are not sent any more. */
	canceled: number;
	/** Suppressions deleted; the erasure takes their place. */
	suppressions: number;
}

/**
 * Persons who want to be forgotten. Throws `invalid` for what is no address. An erased address gets no bulk mail, and
 * creating, moving or importing a subscriber with it is refused with the code `erased`.
 */
export interface Erasures {
	/** Of somebody unknown, too: all counts are 0, and the address is not taken from then on. */
	erase(email: string, call?: Call): Promise<Erasure>;
	/** The address may be added again; what was erased does not come back. Throws `not_found`. */
	lift(email: string, call?: Call): Promise<void>;
}
