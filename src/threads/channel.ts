/** Asks a thread and hands out its answers; whatever is asked within one tick travels as one message. */
import type { Worker } from 'node:worker_threads';
import { StoreError } from '../store/errors.js';
import type { Answer, Operation } from './operations.js';
import { parseFailure } from './thread-errors.js';

/** One end of a conversation with a thread. */
export interface Channel {
	/** Rejects with what the operation threw over there; with `StoreError` "io" when the thread has ended. */
	call(operation: Omit<Operation, 'id'>): Promise<unknown>;
	/** Ends the thread at once; what is unanswered rejects. */
	end(): Promise<void>;
}

interface Waiting {
	resolve(value: unknown): void;
	reject(error: unknown): void;
}

/** `onFailure` is called once when the thread ends without being told to. `name` is what the errors call it. */
export function openChannel(
	worker: Worker,
	{ name, onFailure }: { name: string; onFailure: (error: StoreError) => void },
): Channel {
	const waiting = new Map<number, Waiting>();
	let outbox: Operation[] = [];
	let lastId = 0;
	let ended: StoreError | null = null;

	const send = () => {
		const operations = outbox;
		outbox = [];
		try {
			worker.postMessage(operations);
		} catch {
			// One of them cannot be copied; the others are none the worse for it.
			for (const operation of operations) sendAlone(operation);
		}
	};

	const sendAlone = (operation: Operation) => {
		try {
			worker.postMessage([operation]);
		} catch (error) {
			waiting.get(operation.id)?.reject(error);
			waiting.delete(operation.id);
		}
	};

	const onAnswers = (answers: readonly Answer[]) => {
		for (const answer of answers) {
			const asker = waiting.get(answer.id);
			waiting.delete(answer.id);
			if (answer.kind === 'value') asker?.resolve(answer.value);
			else asker?.reject(parseFailure(answer.failure));
		}
	};

	const stop = (why: string, cause: unknown) => {
		if (ended !== null) return null;
		ended = new StoreError('io', why, { cause });
		for (const { reject } of waiting.values()) reject(ended);
		waiting.clear();
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

	return {
		call: (operation) =>
			new Promise((resolve, reject) => {
				if (ended !== null) return reject(ended);
				lastId += 1;
				waiting.set(lastId, { resolve, reject });
				// After what else this tick brings: a message costs more than what is in it.
				if (outbox.length === 0) setImmediate(send);
				outbox.push({ id: lastId, ...operation });
			}),
		end: async () => {
			stop(`the ${name} is closed`, null);
			await worker.terminate();
		},
	};
}
