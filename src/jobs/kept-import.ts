/**
 * The stored state of an import on another deployment: its progress and counts, and what rows of the next batch were
 * about to do. Addresses are kept as hashes.
 */
import { createHash } from 'node:crypto';
import type { EmailKey } from '../api/address.js';
import type { Ack, ImportCounts } from '../api/capabilities.js';
import type { Intent } from './row-outcome.js';

/** Eleven characters that identify an address; two of a million are equal in one import of 37 million. */
export type AddressHash = string;

/** A finished batch. `ack.position` counts the rows of the whole import, this batch included. */
export interface AckedBatch {
	first: number;
	ack: Ack<ImportCounts>;
	/** Rows whose `disable_reason` was left out. */
	reasonsLeftOut: number;
	/** Addresses that this batch adds to the import. */
	taken: readonly AddressHash[];
}

/** The stored progress of an import; reads give the state that earlier runs left. */
export interface KeptImport {
	/** Rows acknowledged. */
	readonly position: number;
	readonly counts: ImportCounts;
	readonly reasonsLeftOut: number;
	/** The last answer; null: there was none. */
	readonly last: { first: number; ack: Ack<ImportCounts> } | null;
	/** Rows begun after that, by number. */
	readonly begun: ReadonlyMap<number, Intent>;
	/** Addresses of the import. */
	taken(): AsyncIterable<AddressHash>;
	/** Resolves when it is stored; calls of one turn are stored together. */
	declare(row: number, intent: Intent): Promise<void>;
	/** Resolves when it is stored: from then on a resumed run skips the rows. */
	acknowledge(batch: AckedBatch): Promise<void>;
	close(): Promise<void>;
	/** The import is at its end: there is nothing to resume. */
	remove(): Promise<void>;
}

/** Opens the stored state of the import of that key, for this process alone. */
export type KeepImport = (key: string) => Promise<KeptImport>;

/** For an import that cannot be resumed: nothing is stored. */
export async function keepNothing(): Promise<KeptImport> {
	const done = async () => undefined;
	return {
		position: 0,
		counts: { created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 },
		reasonsLeftOut: 0,
		last: null,
		begun: new Map(),
		taken: none,
		declare: done,
		acknowledge: done,
		close: done,
		remove: done,
	};
}

/** Compare these, never the addresses. */
export function hashOf(key: EmailKey): AddressHash {
	return createHash('sha256').update(key).digest().toString('base64url', 0, 8);
}

async function* none(): AsyncGenerator<never, void, undefined> {
	// An import without stored state begins anew.
}
