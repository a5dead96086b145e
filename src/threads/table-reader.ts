import type { Bundle, BundleRequest, LentBundle, RowBytes } from '../jobs/import-bundles.js';
import { type Failure, parseFailure } from './channel.js';
import { spawnThread } from './spawn.js';

const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 8 };

/** Throws `TableError` and the signal's reason. The thread ends together with the loop. */
export async function* readInThread(
	order: TableOrder,
	signal: AbortSignal,
): AsyncGenerator<LentBundle, void, undefined> {
	signal.throwIfAborted();
	const inbox: TableMessage[] = [];
	let died: Error | null = null;
	let wake = () => {};
	const worker = spawnThread('table', { workerData: order, resourceLimits });
	worker
		.on('message', (message: TableMessage) => {
			inbox.push(message);
			wake();
		})
		.on('error', (error) => {
			died = new Error(`reading the table failed: ${error.message}`, { cause: error });
			wake();
		})
		// Report a lost bundle, because its rows are not counted yet.
		.on('messageerror', (error) => {
			inbox.length = 0;
			died = new Error(`a part of the table was lost: ${error.message}`, { cause: error });
			wake();
		})
		.on('exit', () => {
			died ??= new Error('the thread that reads the table has ended');
			wake();
		});
	const reply = (message: TableReply, handedOver: ArrayBuffer[] = []) =>
		worker.postMessage(message, handedOver);
	const onAbort = () => wake();
	signal.addEventListener('abort', onAbort);
	try {
		for (;;) {
			signal.throwIfAborted();
			const message = inbox.shift();
			if (message === undefined) {
				if (died !== null) throw died;
				await new Promise<void>((resolve) => {
					wake = resolve;
				});
				continue;
			}
			if (message.kind === 'end') return;
			if (message.kind === 'failed') throw parseFailure(message.failure);
			reply('taken');
			const { bundle } = message;
			yield { ...bundle, giveBack: () => reply(bundle.rows, buffersOf(bundle.rows)) };
		}
	} finally {
		signal.removeEventListener('abort', onAbort);
		await worker.terminate();
	}
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
 * One transaction writes all rows read ahead. With a fifth of this, importing a million rows into five million writes
 * three times as much.
 */
export const maxRowsAhead = 125_000;

export function buffersOf({ put, originals }: RowBytes): ArrayBuffer[] {
	return [put, originals].flatMap(({ bytes, ends }) => [bytes.buffer, ends.buffer]);
}
