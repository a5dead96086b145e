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
	openImport(c: {
		id: Uuid;
		key: string;
		spec: ImportSpec;
		now: Micros;
	}): Promise<Session | 'conflict' | null>;
	/**
	 * A large batch may take several commits, the position with each. An interrupted batch that is put again continues,
	 * and its answer covers all of its rows. Batches are taken in order.
	 */
	putImportBatch(c: {
		session: Uuid;
		batch: ImportBatch | CheckedBatch;
		now: Micros;
		/** Inserts without a look-up: the database refuses the batch where a row is there already. */
		expects_new?: boolean | undefined;
	}): Promise<ImportAck>;
	finishImport(c: { session: Uuid; now: Micros }): Promise<ImportCounts | null>;
}

export type RowIntent = 'create' | 'update';

export interface RowImport {
	import: number;
	position: number;
	counts: ImportCounts;
	reasons_left_out: number;
	last: { first: number; ack: Ack<ImportCounts> } | null;
	intents: readonly { row: number; intent: RowIntent }[];
}

export interface RowBatch {
	first: number;
	ack: Ack<ImportCounts>;
	reasons_left_out: number;
	taken: readonly string[];
}

export interface RowImportReads {
	sliceImportAddresses(c: { import: number; after: string; limit: number }): Promise<string[]>;
}

export interface RowImportWrites {
	openRowImport(c: { key: string; now: Micros }): Promise<RowImport>;
	declareRow(c: { import: number; row: number; intent: RowIntent }): Promise<void>;
	acknowledgeRows(c: RowBatch & { import: number }): Promise<void>;
	dropRowImport(c: { import: number }): Promise<void>;
}
