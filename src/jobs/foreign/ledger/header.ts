/** A ledger's first line: what wrote the file, and for which job. */
import type { FileHandle } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { LedgerError } from './error.js';
import { formatRecords, type LedgerRecord, readLines } from './lines.js';

/** Whose a ledger is. */
export interface LedgerHeader {
	/** Who reads it: `import`, `mailing`. */
	kind: string;
	/** Of the records' shape; a ledger of a later one is refused. */
	version: number;
	/** Plain JSON. The same job is one that is deeply equal. */
	job: LedgerRecord;
}

/** As it is written, with its newline. */
export function formatHeader({ kind, version, job }: LedgerHeader): Buffer {
	return Buffer.from(formatRecords([{ ledger: kind, version, job }]));
}

/** The header and the offset behind it; null: the file does not begin with one. */
export async function readHeader(
	file: FileHandle,
	size: number,
): Promise<{ header: LedgerHeader; end: number } | null> {
	for await (const { record, end } of readLines(file, size)) {
		const header = record === null ? null : headerOf(record);
		return header === null ? null : { header, end };
	}
	return null;
}

/** Nothing, or the beginning of a header that never got to the disk whole. */
export async function isTornHeader(file: FileHandle, size: number): Promise<boolean> {
	const start = Buffer.from('{"ledger":');
	const length = Math.min(size, start.length);
	const { buffer } = await file.read(Buffer.alloc(length), 0, length, 0);
	return buffer.equals(start.subarray(0, length));
}

/** Throws `LedgerError` when a ledger is not that of the job it was opened for. */
export function assertSameJob(path: string, found: LedgerHeader, wanted: LedgerHeader): void {
	const { kind, version } = found;
	if (kind === wanted.kind && version > wanted.version)
		throw new LedgerError('newer', `${path} was written by a newer version of mailctl`);
	// As it comes back from JSON, where what is undefined is absent.
	const job: unknown = JSON.parse(JSON.stringify(wanted.job));
	if (kind !== wanted.kind || version !== wanted.version || !isDeepStrictEqual(found.job, job))
		throw new LedgerError('another_job', `${path} belongs to another ${kind} job`);
}

function headerOf({ ledger: kind, version, job }: LedgerRecord): LedgerHeader | null {
	if (typeof kind !== 'string' || typeof version !== 'number') return null;
	if (typeof job !== 'object' || job === null || Array.isArray(job)) return null;
	return { kind, version, job: job as LedgerRecord }; // an object, as just looked at
}
