/** A mailing's row, and what an expansion of a list into it says. */

import type {
	AcceptCounts,
	Ack,
	ImportBatch,
	ImportCounts,
	MailingStatus,
	Reject,
} from '../../api/capabilities.js';
import type { CheckedBatch } from '../../api/checked-batch.js';
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { ImportAck } from '../store.js';

/** One bounded part of an expansion; see `addListToMailing`. */
export interface StageSlice {
	mailing: Uuid;
	list_id: number;
	now: Micros;
	limit: number;
}

export interface StagedSlice {
	position: number;
	counts: AcceptCounts;
	/** The first of the list, those of earlier slices among them. */
	rejects: Reject[];
	isDone: boolean;
}

/** One bounded part of a batch: its rows `from` … `from` + `limit` − 1. */
export interface ImportSlice {
	batch: ImportBatch | CheckedBatch;
	from: number;
	limit: number;
}

/** Parts of operations that would hold the write lock for too long in one transaction. */
export interface Slices {
	/** Of `addListToMailing`; null where that is null. */
	stageSlice(command: StageSlice): StagedSlice | null;
	/**
	 * Of `putImportBatch`: what is to be answered to rows from `first` on without putting them, for they were put or cannot
	 * be; null: they are the next, behind so many others `ahead` of them that are about to be put.
	 */
	findImportAnswer(command: { session: Uuid; first: number; ahead: number }): ImportAck | null;
	/**
	 * Puts rows that are the next, each slice behind the one before. Each is acknowledged by itself, and its answer is
	 * given again to who puts the same first row again.
	 */
	putImportSlices(command: {
		session: Uuid;
		slices: readonly ImportSlice[];
		now: Micros;
	}): Ack<ImportCounts>[];
	/** Of `cancelMailing`: removes messages that were never released; answers how many. */
	dropStaged(command: { mailing: Uuid; limit: number }): number;
}

/** Rejects that an expansion lists; it counts all of them. */
export const maxListedRejects = 100;

export interface MailingRow {
	seq: number;
	id: Uuid;
	key: string;
	spec: string;
	strict_vars: number;
	state: MailingStatus['state'];
	requests: number;
	is_complete: number;
	staged: number;
	suppressed: number;
	rejected: number;
	/** Rows of batches acknowledged; what came from lists is numbered apart. */
	position: number;
}

/** Subscribers read from lists so far. */
export function readFromLists({ staged, suppressed, rejected, position }: MailingRow): number {
	return staged + suppressed + rejected - position;
}

/** Everything that names a mailing's row, in this order. */
export const mailingColumns =
	'seq, id, key, spec, strict_vars, state, requests, is_complete, staged, suppressed, rejected, position';

/** What is to be counted, from nothing. */
export function noCounts(): AcceptCounts {
	return { staged: 0, suppressed: 0, rejected: 0 };
}
