/**
 * The rows of a mailing, put in numbered batches: whatever was acknowledged stays, and a later run goes on behind it.
 * Memory: one batch.
 */
import type { AcceptCounts, Ack, Session } from '../api/capabilities.js';
import { ApiError } from '../api/errors.js';

/** How rows of one kind are put, and told that there are no more. */
export interface MailingSink<Row> {
	put(first: number, rows: readonly Row[]): Promise<Ack<AcceptCounts>>;
	complete(position: number): Promise<void>;
}

export interface StagingJob<Row> {
	session: Session;
	/** All rows from the first on, the same in each run: those put before are passed over. */
	rows: AsyncIterable<Row>;
	sink: MailingSink<Row>;
	/** Rows a batch, 2,000 unless given; a batch is also at most 4 MiB of JSON. */
	batchRows?: number;
	/** Bytes of JSON a batch where rows stand for many recipients; a larger row is put alone. */
	batchBytes?: number;
	/** Stops after the batch in flight, with the signal's reason. */
	signal?: AbortSignal;
	/** Rows put so far, after each acknowledged batch and at the beginning. */
	onProgress?: (position: number) => void;
}

/** 4 MiB less the JSON around the rows. */
export const maxRowsBytes = 4 * 1024 * 1024 - 64 * 1024;

/** A batch holds the write lock of the database while it is staged: about a tenth of a second. */
const defaultRows = 2_000;

/**
 * Puts what is left; resolves when all rows are acknowledged and the mailing knows that no more come. A row that is
 * larger than a batch may be is the caller's to refuse. Throws `ApiError` as it comes.
 */
export async function stageRows<Row>(job: StagingJob<Row>): Promise<void> {
	const { session, rows, sink, signal, onProgress } = job;
	const { batchRows = defaultRows, batchBytes = maxRowsBytes } = job;
	let position = session.position;
	onProgress?.(position);
	let seen = 0;
	let batch: Row[] = [];
	let bytes = 0;
	const put = async () => {
		if (batch.length === 0) return;
		position = await putWhole(sink, position, batch);
		onProgress?.(position);
		batch = [];
		bytes = 0;
		signal?.throwIfAborted();
	};
	for await (const row of rows) {
		signal?.throwIfAborted();
		seen += 1;
		if (seen <= session.position) continue;
		const size = Buffer.byteLength(JSON.stringify(row)) + 1;
		if (bytes + size > batchBytes || batch.length >= batchRows) await put();
		batch.push(row);
		bytes += size;
	}
	await put();
	assertSameSource(seen, position);
	await sink.complete(position);
}

/** The position behind the batch. Without a signal: what is in flight is waited for, so that its fate is known. */
async function putWhole<Row>(sink: MailingSink<Row>, first: number, rows: readonly Row[]): Promise<number> {
	const ack = await sink.put(first, rows);
	const end = first + rows.length;
	if (ack.position === end) return end;
	throw new ApiError(
		'bad_answer',
		`the batch of rows ${first} to ${end} was answered with position ${ack.position}`,
	);
}

/** Fewer rows than an earlier run put: whatever this source is, it is not the one the mailing was begun with. */
function assertSameSource(seen: number, position: number): void {
	if (seen >= position) return;
	throw new ApiError('conflict', `the source has ${seen} rows, but ${position} were put before`);
}
