/** Where a table comes from: a file by path, or a stream such as stdin. Effects only; what the bytes mean is elsewhere. */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { TableError } from './finding.js';

/** A path, or bytes that are coming with a name for messages. */
export type TableSource = string | { name: string; stream: AsyncIterable<Uint8Array> };

const chunkBytes = 256 * 1024;

/** A file by the last part of its path: for messages, not for telling files apart. */
export function sourceName(source: TableSource): string {
	return typeof source === 'string' ? basename(source) : source.name;
}

/** The bytes, in order; throws `TableError` for no file, a directory, an unreadable one, and the signal's reason. */
export async function* readBytes(
	source: TableSource,
	signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
	const bytes = typeof source === 'string' ? readFile(source) : source.stream;
	const iterator = bytes[Symbol.asyncIterator]();
	try {
		for (;;) {
			const next = await orAborted(iterator.next(), signal);
			if (next.done) return;
			yield next.value;
		}
	} finally {
		// Not awaited: a stream that hangs (a terminal, a pipe) would hold up the end of an interrupted command.
		iterator.return?.().catch(() => undefined);
	}
}

/** What one reading of a whole file tells of it. */
export interface Survey {
	/** SHA-256, lower-case hex: with it a later run knows that it reads the same file. */
	sha256: string;
	/** Line feeds: about as many rows as there are, for a progress. 0 where lines end in CR alone. */
	lineFeeds: number;
}

/** Throws what `readBytes` throws. */
export async function surveySource(path: string, signal?: AbortSignal): Promise<Survey> {
	const hash = createHash('sha256');
	let lineFeeds = 0;
	for await (const chunk of readBytes(path, signal)) {
		hash.update(chunk);
		for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lineFeeds += 1;
	}
	return { sha256: hash.digest('hex'), lineFeeds };
}

async function* readFile(path: string): AsyncGenerator<Uint8Array, void, undefined> {
	const file = await open(path).catch((error: unknown) => Promise.reject(unreadable(path, error)));
	try {
		if ((await file.stat()).isDirectory()) throw new TableError('directory', `${path} is a directory`);
		for (;;) {
			const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, null);
			if (bytesRead === 0) return;
			yield buffer.subarray(0, bytesRead);
		}
	} finally {
		await file.close();
	}
}

function unreadable(path: string, error: unknown): TableError {
	const code = error instanceof Error && 'code' in error ? error.code : '';
	if (code === 'ENOENT' || code === 'ENOTDIR') return new TableError('no_such_file', `no such file: ${path}`);
	if (code === 'EISDIR') return new TableError('directory', `${path} is a directory`);
	const why = code === 'EACCES' || code === 'EPERM' ? 'permission denied' : String(code);
	return new TableError('unreadable', `cannot read ${path}: ${why}`, { cause: error });
}

/** A read that hangs must not outlive Ctrl-C. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
	if (signal === undefined) return work;
	// Where nobody waits for it any more, what it fails with is nobody's.
	work.catch(() => undefined);
	signal.throwIfAborted();
	let onAbort = () => {};
	const aborted = new Promise<never>((_, reject) => {
		onAbort = () => reject(signal.reason);
		signal.addEventListener('abort', onAbort, { once: true });
	});
	try {
		return await Promise.race([work, aborted]);
	} finally {
		signal.removeEventListener('abort', onAbort);
	}
}
