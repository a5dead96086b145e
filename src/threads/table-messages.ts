/** Messages between an import and the thread that reads its table. */
import type { BundleRequest, PackedBundle, RowBytes } from '../jobs/import-bundles.js';
import { TableError, type TableErrorOptions, type TableFault } from '../tables/finding.js';
import { type Failure, formatFailure, parseFailure } from './thread-errors.js';

/** The input of the thread. */
export interface TableOrder {
	path: string;
	/** As determined for its header. */
	encoding: string;
	delimiter: string;
	request: BundleRequest;
}

/** Back to the thread: a bundle was taken, or its bytes may be used again. */
export type TableReply = 'taken' | RowBytes;

export type TableMessage =
	| { kind: 'bundle'; bundle: PackedBundle }
	| { kind: 'end' }
	| { kind: 'refused'; code: TableFault; message: string; options: TableErrorOptions }
	| { kind: 'failed'; failure: Failure };

/** Bytes of bundles read ahead, which wait in memory. */
export const maxSizeAhead = 12 * 1024 * 1024;
/**
 * Rows ahead for the next transaction, which takes all of them when it begins. With a fifth of this, importing a
 * million rows into five million writes three times as much, for each transaction writes most pages of the index anew.
 */
export const maxRowsAhead = 125_000;

/** The buffers to transfer with the message, instead of a copy. */
export function buffersOf({ put, originals }: RowBytes): ArrayBuffer[] {
	return [put, originals].flatMap(({ bytes, ends }) => [bytes.buffer, ends.buffer]);
}

/** An error of the reader as a message: an error loses its class between threads. */
export function formatTableFailure(error: unknown): TableMessage {
	if (!(error instanceof TableError)) return { kind: 'failed', failure: formatFailure(error) };
	const options = {
		...(error.hint !== null && { hint: error.hint }),
		...(error.details !== null && { details: error.details }),
	};
	return { kind: 'refused', code: error.code, message: error.message, options };
}

/** The error of the reader: a `TableError` again if it was one. */
export function parseTableFailure(message: Extract<TableMessage, { kind: 'refused' | 'failed' }>): Error {
	return message.kind === 'refused'
		? new TableError(message.code, message.message, message.options)
		: parseFailure(message.failure);
}
