/** What passes between an import and the thread that reads its table. */
import type { CliErrorOptions } from '../cli/errors.js';
import { TableError, type TableFault } from '../cli/tabular/finding.js';
import type { BundleRequest, PackedBundle, RowBytes } from '../jobs/packed-bundles.js';
import { type Failure, formatFailure, parseFailure } from './thread-errors.js';

/** What the thread is started with. */
export interface TableOrder {
	path: string;
	/** As the table was opened with before, for its header. */
	encoding: string;
	delimiter: string;
	request: BundleRequest;
}

/** Back to the thread: a bundle was taken from those that wait, or its bytes may be used again. */
export type TableReply = 'taken' | RowBytes;

export type TableMessage =
	| { kind: 'bundle'; bundle: PackedBundle }
	| { kind: 'end' }
	| { kind: 'refused'; code: TableFault; message: string; options: CliErrorOptions }
	| { kind: 'failed'; failure: Failure };

/** Bytes of bundles that wait to be taken: what is read meanwhile is waiting here, not in a file. */
export const maxSizeAhead = 12 * 1024 * 1024;
/**
 * Rows of them: those of the next transaction, which takes what is here when it begins. Of a fifth of them a million
 * rows into five million write three times as much, for each transaction writes most pages of the index anew.
 */
export const maxRowsAhead = 125_000;

/** What hands the bytes over with the message, instead of a copy. */
export function buffersOf({ put, originals }: RowBytes): ArrayBuffer[] {
	return [put, originals].flatMap(({ bytes, ends }) => [bytes.buffer, ends.buffer]);
}

/** What reading threw, as a message: an error loses its class between threads. */
export function formatTableFailure(error: unknown): TableMessage {
	if (!(error instanceof TableError)) return { kind: 'failed', failure: formatFailure(error) };
	const options = {
		...(error.hint !== null && { hint: error.hint }),
		...(error.details !== null && { details: error.details }),
	};
	// The codes of a TableError are those of its constructor.
	return { kind: 'refused', code: error.code as TableFault, message: error.message, options };
}

/** The error that reading threw: a `TableError` again if it was one. */
export function parseTableFailure(message: Extract<TableMessage, { kind: 'refused' | 'failed' }>): Error {
	return message.kind === 'refused'
		? new TableError(message.code, message.message, message.options)
		: parseFailure(message.failure);
}
