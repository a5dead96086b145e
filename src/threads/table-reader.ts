/** Bundles of a table that another thread reads, on demand. */
import type { LentBundle } from '../jobs/import-bundles.js';
import { spawnThread } from './spawn.js';
import {
	buffersOf,
	parseTableFailure,
	type TableMessage,
	type TableOrder,
	type TableReply,
} from './table-messages.js';

/** Besides bundles read ahead it keeps a block of the file and a bundle; beyond this only the thread dies. */
const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 8 };

/**
 * Throws the errors of reading (`TableError`), and the signal's reason as soon as it is aborted. The thread ends with
 * the loop, wherever the loop is left.
 */
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
			died = new Error(`the table could not be read on: ${error.message}`, { cause: error });
			wake();
		})
		// A lost bundle would go unnoticed: its rows were not counted yet.
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
			if (message.kind !== 'bundle') throw parseTableFailure(message);
			reply('taken');
			const { bundle } = message;
			yield { ...bundle, giveBack: () => reply(bundle.rows, buffersOf(bundle.rows)) };
		}
	} finally {
		signal.removeEventListener('abort', onAbort);
		await worker.terminate();
	}
}
