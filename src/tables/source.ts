import { createHash } from 'node:crypto';
import { constants, createReadStream, open as openPolled } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { promisify } from 'node:util';
import { codeOf } from '../api/errors.js';
import { TableError } from './finding.js';

export type TableSource =
	| string
	| { name: string; stream: AsyncIterable<Uint8Array> }
	| { name: string; again: () => AsyncIterable<Uint8Array> };

const chunkBytes = 256 * 1024;

export function sourceName(source: TableSource): string {
	return typeof source === 'string' ? basename(source) : source.name;
}

export async function isRepeatable(source: TableSource): Promise<boolean> {
	return typeof source === 'string' ? (await stat(source)).isFile() : 'again' in source;
}

export async function* readBytes(
	source: TableSource,
	signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
	const iterator = bytesOf(source, signal)[Symbol.asyncIterator]();
	try {
		for (;;) {
			const next = await orAborted(iterator.next(), signal);
			if (next.done) return;
			yield next.value;
		}
	} finally {
		// Do not await `return`: a hanging terminal or pipe would delay the end of an interrupted command.
		iterator.return?.().catch(() => undefined);
	}
}

export interface Survey {
	sha256: string;
	/** Number of line feeds: an estimate of the rows for a progress display. 0 if lines end in CR only. */
	lineFeeds: number;
}

export async function surveySource(
	source: TableSource,
	signal?: AbortSignal,
	take?: (chunk: Uint8Array, lineFeeds: number) => Promise<void>,
): Promise<Survey> {
	const hash = createHash('sha256');
	let lineFeeds = 0;
	for await (const chunk of readBytes(source, signal)) {
		await take?.(chunk, lineFeeds);
		hash.update(chunk);
		for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lineFeeds += 1;
	}
	return { sha256: hash.digest('hex'), lineFeeds };
}

async function* readFile(path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
	const fail = (error: unknown) => Promise.reject(unreadable(path, error));
	if ((await stat(path).catch(fail)).isFIFO()) return yield* await fileStream(path, signal).catch(fail);
	const file = await open(path).catch(fail);
	try {
		if ((await file.stat()).isDirectory()) throw new TableError('directory', `${path} is a directory`);
		yield* readChunks(file, null);
	} finally {
		await file.close();
	}
}

/** Reads an open file from its first byte, or from its current position (null), as pipes require. */
export async function* readChunks(
	file: FileHandle,
	start: 0 | null,
): AsyncGenerator<Uint8Array, void, undefined> {
	for (let position: number | null = start; ; ) {
		const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, position);
		if (bytesRead === 0) return;
		if (position !== null) position += bytesRead;
		yield buffer.subarray(0, bytesRead);
	}
}

function bytesOf(source: TableSource, signal?: AbortSignal): AsyncIterable<Uint8Array> {
	if (typeof source === 'string') return readFile(source, signal);
	return 'again' in source ? source.again() : source.stream;
}

export async function assertThere(path: string): Promise<void> {
	if (path === '-') return;
	await stat(path).catch((error: unknown) => Promise.reject(unreadable(path, error)));
}

function unreadable(path: string, error: unknown): TableError {
	const code = codeOf(error);
	if (code === 'ENOENT' || code === 'ENOTDIR') return new TableError('no_such_file', `${path}: no such file`);
	if (code === 'EISDIR') return new TableError('directory', `${path} is a directory`);
	const why = code === 'EACCES' || code === 'EPERM' ? 'permission denied' : code;
	return new TableError('unreadable', `cannot read ${path}: ${why}`, { cause: error });
}

/** Rejects when the signal aborts, because a hanging read must not delay Ctrl-C. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
	if (signal === undefined) return work;
	// After an abort, nobody else would handle an error of the read.
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

/** Polls a named pipe, because a blocking read without a writer would hold a thread and keep the process alive. */
export async function fileStream(path: string, signal?: AbortSignal): Promise<Readable> {
	signal?.throwIfAborted();
	const stream = (await stat(path)).isFIFO() ? await pipeStream(path) : createReadStream(path);
	return signal === undefined ? stream : addAbortSignal(signal, stream);
}

async function pipeStream(path: string): Promise<Readable> {
	const { Socket } = await import('node:net');
	const fd = await promisify(openPolled)(path, constants.O_RDONLY | constants.O_NONBLOCK);
	return new Socket({ fd, readable: true, writable: false });
}
