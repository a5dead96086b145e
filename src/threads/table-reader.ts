import { on } from 'node:events';
import type { Bundle, BundleRequest, LentBundle, RowBytes } from '../jobs/import-bundles.js';
import { type Failure, parseFailure } from './channel.js';
import { spawnThread } from './spawn.js';

const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 8 };

/** Throws `TableError`, or the signal's reason after an abort. Ends the thread when the caller leaves the loop. */
export async function* readInThread(
	order: TableOrder,
	signal: AbortSignal,
): AsyncGenerator<LentBundle, void, undefined> {
	signal.throwIfAborted();
	const worker = spawnThread('table', { workerData: order, resourceLimits });
	// A `messageerror` loses a bundle of rows, so the reading must fail.
	worker.on('messageerror', (error) => worker.emit('error', error));
	// After the loop nobody else listens, and an unhandled `error` event would end the process.
	worker.on('error', () => undefined);
	const reply = (message: TableReply, handedOver: ArrayBuffer[] = []) =>
		worker.postMessage(message, handedOver);
	try {
		for await (const [message] of on(worker, 'message', { signal, close: ['exit'] })) {
			signal.throwIfAborted();
			const answer: TableMessage = message;
			if (answer.kind === 'end') return;
			if (answer.kind === 'failed') throw parseFailure(answer.failure);
			reply('taken');
			const { bundle } = answer;
			yield { ...bundle, giveBack: () => reply(bundle.rows, buffersOf(bundle.rows)) };
		}
	} catch (error) {
		signal.throwIfAborted();
		throw error;
	} finally {
		await worker.terminate();
	}
	throw new Error('the thread that reads the table has ended');
}

export interface TableOrder {
	path: string;
	encoding: string;
	delimiter: string;
	request: BundleRequest;
}

export type TableReply = 'taken' | RowBytes;

export type TableMessage =
	| { kind: 'bundle'; bundle: Bundle }
	| { kind: 'end' }
	| { kind: 'failed'; failure: Failure };

export const maxSizeAhead = 12 * 1024 * 1024;
/**
 * All rows that are read ahead go into one transaction. With a fifth of this limit, importing a million rows into a
 * list of five million writes three times as many bytes.
 */
export const maxRowsAhead = 125_000;

export function buffersOf({ put, originals }: RowBytes): ArrayBuffer[] {
	return [put, originals].flatMap(({ bytes, ends }) => [bytes.buffer, ends.buffer]);
}
