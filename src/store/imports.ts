import type { Ack, ImportBatch, ImportCounts, ImportSpec, Session } from '../api/capabilities.js';
import type { Micros } from '../api/datetime.js';
import type { Uuid } from '../api/records.js';
import type { CheckedBatch } from '../api/row-texts.js';

export type ImportAck =
	| { kind: 'acknowledged'; ack: Ack<ImportCounts> }
	| { kind: 'gap'; position: number }
	| { kind: 'not_found' }
	| { kind: 'list_gone' };

export interface ImportWrites {
	/** The same key reopens an unfinished session. `null`: no such list. `conflict`: the key stands for another spec. */
	openImport(c: {
		id: Uuid;
		key: string;
		spec: ImportSpec;
		now: Micros;
	}): Promise<Session | 'conflict' | null>;
	/**
	 * Shapes are checked already; rules that need stored state are checked here, row by row. A large batch may take
	 * several commits, the position with each: an interrupted batch that is put again continues, and its answer covers all
	 * of its rows. Batches put before the answer to an earlier one are taken in order.
	 */
	putImportBatch(c: {
		session: Uuid;
		batch: ImportBatch | CheckedBatch;
		now: Micros;
		/** Of one try: while all rows of the session were new, those that are not make the database refuse the batch. */
		expects_new?: boolean | undefined;
	}): Promise<ImportAck>;
	finishImport(c: { session: Uuid; now: Micros }): Promise<ImportCounts | null>;
}

export type RowIntent = 'create' | 'update';

export interface RowImport {
	import: number;
	position: number;
	counts: ImportCounts;
	/** Acknowledged rows whose `disable_reason` was left out. */
	reasons_left_out: number;
	last: { first: number; ack: Ack<ImportCounts> } | null;
	intents: readonly { row: number; intent: RowIntent }[];
}

/** A finished batch of rows. `ack.position` counts the rows of the whole import, this batch included. */
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
	openRowImport(c: { key: string; now: Micros }): Promise<RowImport>;
	/** Recorded before a request that changes something. The write may wait for others to share its commit. */
	declareRow(c: { import: number; row: number; intent: RowIntent }): Promise<void>;
	/** A resumed run skips the acknowledged rows. */
	acknowledgeRows(c: RowBatch & { import: number }): Promise<void>;
	/** The import ended or starts anew: deletes its state. */
	dropRowImport(c: { import: number }): Promise<void>;
}
