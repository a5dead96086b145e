/** Imports row by row, into a list of a service: the state kept outside the process. Plain data. */
import type { Ack, ImportCounts } from '../api/capabilities.js';
import type { Micros } from '../api/datetime.js';

/** The intent of a row when its request was made. */
export type RowIntent = 'create' | 'update';

/** The progress of such an import. */
export interface RowImport {
	/** Identifies it in the other commands. */
	import: number;
	/** Acknowledged rows. */
	position: number;
	counts: ImportCounts;
	/** Acknowledged rows whose `disable_reason` was left out. */
	reasons_left_out: number;
	/** The last answer; null: no batch was acknowledged. */
	last: { first: number; ack: Ack<ImportCounts> } | null;
	/** Rows begun after it, by number. */
	intents: readonly { row: number; intent: RowIntent }[];
}

/** A finished batch. `ack.position` counts the rows of the whole import, this batch included. */
export interface RowBatch {
	first: number;
	ack: Ack<ImportCounts>;
	reasons_left_out: number;
	/** Hashes of the addresses that this batch adds to the import. */
	taken: readonly string[];
}

export interface RowImportReads {
	/** In order, those after `after`, at most `limit`. */
	sliceImportAddresses(c: { import: number; after: string; limit: number }): Promise<string[]>;
}

export interface RowImportWrites {
	/** The unfinished import of that key, or a new one. */
	openRowImport(c: { key: string; now: Micros }): Promise<RowImport>;
	/** Recorded before a request that changes something. The write may wait for others to share its commit. */
	declareRow(c: { import: number; row: number; intent: RowIntent }): Promise<void>;
	/** A resumed run skips the acknowledged rows. */
	acknowledgeRows(c: RowBatch & { import: number }): Promise<void>;
	/** The import ended or starts anew: deletes its state. */
	dropRowImport(c: { import: number }): Promise<void>;
}
