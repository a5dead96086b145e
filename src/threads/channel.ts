/** Sends operations to a thread and returns its answers; operations of one tick travel as one message. */

import type { Worker } from 'node:worker_threads';
import { StoreError } from '../api/errors.js';
import type { Answer, Operation } from './remote.js';
import { isStopped, parseFailure } from './thread-errors.js';

/** One end of a conversation with a thread. */
export interface Channel {
	/**
	 * Rejects with the error of the operation in the thread, with the signal's reason where that stopped it, and with
	 * `StoreError` "io" when the thread has ended.
	 */
	call(operation: Omit<Operation, 'id' | 'isStoppable'>, signal?: AbortSignal): Promise<unknown>;
	/** Ends the thread at once; unanswered operations reject. */
	end(): Promise<void>;
}

interface Waiting {
	resolve(value: unknown): void;
	reject(error: unknown): void;
}

/** Calls `onFailure` once when the thread ends unexpectedly. `name` is its name in errors. */
export function openChannel(
	worker: Worker,
	{ name, onFailure }: { name: string; onFailure: (error: StoreError) => void },
): Channel {
	// Not a Map: tables that it outgrew led V8 to later ones, so that answers lived until a full collection.
	const waiting: Record<number, Waiting> = {};
	let queued: Operation[] = [];
	let lastId = 0;
	let ended: StoreError | null = null;

	const take = (id: number): Waiting | undefined => {
		const asker = waiting[id];
		delete waiting[id];
		return asker;
	};

	const send = () => {
		const operations = queued;
		queued = [];
		try {
			worker.postMessage(operations);
		} catch {
			// One of them cannot be copied; the others are sent one by one.
			for (const operation of operations) sendAlone(operation);
		}
	};

	const sendAlone = (operation: Operation) => {
		try {
			worker.postMessage([operation]);
		} catch (error) {
			take(operation.id)?.reject(error);
		}
	};

	const onAnswers = (answers: readonly Answer[]) => {
		for (const answer of answers) {
			const asker = take(answer.id);
			if (answer.kind === 'value') asker?.resolve(answer.value);
			else asker?.reject(parseFailure(answer.failure));
		}
	};

	const stop = (why: string, cause: unknown) => {
		if (ended !== null) return null;
		ended = new StoreError('io', why, { cause });
		for (const id of Object.keys(waiting)) take(Number(id))?.reject(ended);
		return ended;
	};

	const fail = (cause: unknown) => {
		const error = stop(`the ${name} has failed: ${cause instanceof Error ? cause.message : cause}`, cause);
		if (error !== null) onFailure(error);
	};

	worker
		.on('message', onAnswers)
		.on('messageerror', fail)
		.on('error', fail)
		.on('exit', (code) => fail(`it ended with ${code}`));

	const ask = (operation: Omit<Operation, 'id'>) =>
		new Promise<unknown>((resolve, reject) => {
			if (ended !== null) return reject(ended);
			lastId += 1;
			waiting[lastId] = { resolve, reject };
			// After the other work of this tick: a message costs more than its content.
			if (queued.length === 0) setImmediate(send);
			queued.push({ id: lastId, ...operation });
		});

	const askUntil = async (operation: Omit<Operation, 'id'>, signal: AbortSignal) => {
		signal.throwIfAborted();
		const asked = ask({ ...operation, isStoppable: true });
		const id = lastId;
		// A thread that has ended answers neither.
		const stopIt = () => void ask({ part: 'thread', method: 'stop', command: id }).catch(() => undefined);
		signal.addEventListener('abort', stopIt, { once: true });
		try {
			return await asked;
		} catch (error) {
			throw isStopped(error) ? signal.reason : error;
		} finally {
			signal.removeEventListener('abort', stopIt);
		}
	};

	return {
		call: (operation, signal) => (signal === undefined ? ask(operation) : askUntil(operation, signal)),
		end: async () => {
			stop(`the ${name} is closed`, null);
			await worker.terminate();
		},
	};
}
