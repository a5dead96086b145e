/**
 * What an import on a deployment of others keeps outside the process: batches that are acknowledged, with all that is
 * told of them, and what rows of the next one were about to do. Addresses are kept as hashes.
 */
import { createHash } from 'node:crypto';
import type { EmailKey } from '../../api/address.js';
import type { Ack, ImportCounts, Reject } from '../../api/capabilities.js';
import type { Intent } from './fate.js';
import { LedgerError } from './ledger/error.js';
import type { LedgerRecord } from './ledger/lines.js';
import { type Ledger, openLedger } from './ledger.js';

/** Eleven characters that tell one address from another; two of a million are alike in one import of 37 million. */
export type AddressHash = string;

/** A batch that is done. `ack.position` counts the rows of the whole import, this batch included. */
export interface AckedBatch {
	first: number;
	ack: Ack<ImportCounts>;
	/** Rows whose `disable_reason` was left out. */
	reasonsLeftOut: number;
	/** Addresses that stand in the import by this batch. */
	taken: readonly AddressHash[];
}

/** Where an import keeps what it has done. */
export interface ImportLedger {
	/** What earlier runs acknowledged, in order; empty for a new import. */
	readonly batches: AsyncIterable<AckedBatch>;
	/** Rows that an earlier run began after its last acknowledgement, by number; known once the batches are walked. */
	readonly begun: ReadonlyMap<number, Intent>;
	/** Resolves when it is kept; calls of one turn are kept together. */
	declare(row: number, intent: Intent): Promise<void>;
	/** Resolves when it is kept: from then on the rows are passed over by a run that goes on. */
	acknowledge(batch: AckedBatch): Promise<void>;
	close(): Promise<void>;
	/** The import is at its end: there is nothing to go on with. */
	remove(): Promise<void>;
}

const kind = 'import';
const version = 1;

/**
 * The ledger of one job. `deployment` is its base URL. Throws `LedgerError`: another process imports the same, or the
 * file is another's.
 */
export async function openImportLedger(
	path: string,
	job: { deployment: string; key: string },
): Promise<ImportLedger> {
	const ledger = await openLedger(path, { header: { kind, version, job } });
	const begun = new Map<number, Intent>();
	return {
		batches: { [Symbol.asyncIterator]: () => batchesOf(ledger, begun) },
		begun,
		declare: (row, intent) => ledger.append([{ row, intent }]),
		acknowledge: ({ first, ack, reasonsLeftOut, taken }) =>
			ledger.append([{ first, ...ack, reasonsLeftOut, taken }]),
		close: () => ledger.close(),
		remove: () => ledger.remove(),
	};
}

/** For an import that nobody can go on with: nothing is kept. */
export function noImportLedger(): ImportLedger {
	const done = async () => undefined;
	return {
		batches: { [Symbol.asyncIterator]: nothing },
		begun: new Map(),
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

async function* batchesOf(
	ledger: Ledger,
	begun: Map<number, Intent>,
): AsyncGenerator<AckedBatch, void, undefined> {
	begun.clear();
	for await (const record of ledger.records) {
		const { row, intent } = record;
		if (typeof row === 'number' && (intent === 'create' || intent === 'update')) {
			begun.set(row, intent);
			continue;
		}
		begun.clear();
		yield batchOf(record, ledger.path);
	}
}

async function* nothing(): AsyncGenerator<never, void, undefined> {
	// An import without a ledger is always a new one.
}

function batchOf(record: LedgerRecord, path: string): AckedBatch {
	const { first, position, counts, rejects, reasonsLeftOut, taken } = record;
	if (
		typeof first !== 'number' ||
		typeof position !== 'number' ||
		typeof reasonsLeftOut !== 'number' ||
		typeof counts !== 'object' ||
		!Array.isArray(rejects) ||
		!Array.isArray(taken)
	)
		throw new LedgerError('damaged', `${path} holds a line that no import wrote`);
	return {
		first,
		// What this version wrote, in lines that are whole: shapes within need no second look.
		ack: { position, counts: counts as ImportCounts, rejects: rejects as Reject[] },
		reasonsLeftOut,
		taken: taken as AddressHash[],
	};
}
