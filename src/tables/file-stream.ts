/** A file's bytes as a stream that can be left at any time, a named pipe's too. */
import { constants, createReadStream, open } from 'node:fs';
import { stat } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { promisify } from 'node:util';

/**
 * Ends with the signal, by its reason. A pipe whose writer does not come or does not write would hold a thread of the
 * pool, in `open` or in `read`, and the process with it, for it cannot end before its threads: a pipe is polled.
 * Rejects, or ends the stream, with the system's error.
 */
export async function fileStream(path: string, signal?: AbortSignal): Promise<Readable> {
	signal?.throwIfAborted();
	const stream = (await stat(path)).isFIFO() ? await pipeStream(path) : createReadStream(path);
	return signal === undefined ? stream : addAbortSignal(signal, stream);
}

async function pipeStream(path: string): Promise<Readable> {
	const { Socket } = await import('node:net');
	const fd = await promisify(open)(path, constants.O_RDONLY | constants.O_NONBLOCK);
	return new Socket({ fd, readable: true, writable: false });
}
