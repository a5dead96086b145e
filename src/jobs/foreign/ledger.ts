/**
 * What a job on a deployment of others has done, in a file of JSON lines that outlives the process: what was appended
 * and acknowledged is there after a kill and a power cut, and what a crash or a full disk tore is cut off. Private: 0600
 * in a folder of 0700. One process at a time.
 */
import { type FileHandle, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createAppender } from './ledger/append.js';
import { LedgerError } from './ledger/error.js';
import { makePrivateFolder, syncFolder } from './ledger/folder.js';
import { assertSameJob, formatHeader, isTornHeader, type LedgerHeader, readHeader } from './ledger/header.js';
import { findWholeEnd, formatRecords, type LedgerRecord, readLines } from './ledger/lines.js';
import { type FileLock, lockFile } from './ledger/lock.js';

/** An open ledger; `close` it once. */
export interface Ledger {
	readonly path: string;
	/** No earlier run has written here, not even its header. */
	readonly isNew: boolean;
	/** What earlier runs wrote, read from the file as it is walked. May be walked more than once, until it is closed. */
	readonly records: AsyncIterable<LedgerRecord>;
	/**
	 * Resolves when the records are on the disk, in the order of calls; calls of one turn share one sync. Rejects with
	 * the system's error (`ENOSPC`, `EIO`): then these records do not count, unless the process dies before the next
	 * append, which may succeed.
	 */
	append(records: readonly LedgerRecord[]): Promise<void>;
	/** After what was appended. Leaves nothing but the ledger itself. */
	close(): Promise<void>;
	/** Closes, and forgets the job. */
	remove(): Promise<void>;
}

/**
 * Opens it, or makes it with its folder. Throws `LedgerError`, and the system's errors as they come. A file that is not
 * this job's ledger is not touched.
 */
export async function openLedger(path: string, { header }: { header: LedgerHeader }): Promise<Ledger> {
	const lock = await prepare(path);
	let file: FileHandle | null = null;
	try {
		file = await openOrCreate(path);
		const { size } = await file.stat();
		const wholeEnd = await findWholeEnd(file, size, path);
		const isNew = wholeEnd === 0 && (await isTornHeader(file, size));
		const range = isNew
			? await begin(file, path, header)
			: await goOn(file, path, { header, size, wholeEnd });
		return ledgerOn(file, { path, isNew, range, release: lock.release });
	} catch (error) {
		await file?.close();
		await lock.release();
		throw error;
	}
}

const notAllowed = new Set(['EACCES', 'EPERM', 'ENOTDIR', 'EISDIR', 'EEXIST']);

/** Its folder, and the lock. */
async function prepare(path: string): Promise<FileLock> {
	try {
		await makePrivateFolder(dirname(path));
		return await lockFile(path);
	} catch (error) {
		const code = error instanceof Error && 'code' in error ? String(error.code) : '';
		if (!notAllowed.has(code)) throw error;
		throw new LedgerError('unwritable', `${path} cannot be written (${code})`);
	}
}

/** Bytes of the file: where the records begin, and where what counts ends. */
interface Range {
	start: number;
	end: number;
}

function ledgerOn(
	file: FileHandle,
	{ path, isNew, range, release }: { path: string; isNew: boolean; range: Range; release(): Promise<void> },
): Ledger {
	const appender = createAppender(file, range.end);
	let isClosed = false;
	const end = async (last: () => Promise<void>) => {
		if (isClosed) return;
		isClosed = true;
		await appender.idle();
		await file.close();
		await last().finally(release);
	};
	return {
		path,
		isNew,
		records: { [Symbol.asyncIterator]: () => recordsOf(file, path, range) },
		append: async (records) => {
			if (isClosed) throw new Error(`${path} is closed`);
			if (records.length > 0) await appender.append(formatRecords(records));
		},
		close: () => end(async () => undefined),
		remove: () =>
			end(async () => {
				await rm(path, { force: true });
				await syncFolder(dirname(path));
			}),
	};
}

async function* recordsOf(
	file: FileHandle,
	path: string,
	{ start, end }: Range,
): AsyncGenerator<LedgerRecord, void, undefined> {
	for await (const line of readLines(file, end)) {
		if (line.record === null) throw new LedgerError('damaged', `${path} changed while it was read`);
		if (line.end > start) yield line.record;
	}
}

async function openOrCreate(path: string): Promise<FileHandle> {
	return open(path, 'wx+', 0o600).catch((error: unknown) =>
		error instanceof Error && 'code' in error && error.code === 'EEXIST'
			? open(path, 'r+')
			: Promise.reject(error),
	);
}

async function begin(file: FileHandle, path: string, header: LedgerHeader): Promise<Range> {
	const bytes = formatHeader(header);
	await file.truncate(0);
	await file.write(bytes, 0, bytes.length, 0);
	await file.sync();
	await syncFolder(dirname(path));
	return { start: bytes.length, end: bytes.length };
}

async function goOn(
	file: FileHandle,
	path: string,
	{ header, size, wholeEnd }: { header: LedgerHeader; size: number; wholeEnd: number },
): Promise<Range> {
	const found = await readHeader(file, wholeEnd);
	if (found === null) throw new LedgerError('no_ledger', `${path} is no ledger of mailctl`);
	assertSameJob(path, found.header, header);
	await file.chmod(0o600);
	if (wholeEnd < size) {
		await file.truncate(wholeEnd);
		await file.sync();
	}
	return { start: found.end, end: wholeEnd };
}
