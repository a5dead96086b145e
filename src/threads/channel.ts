/**
 * Sends questions to a thread and receives its answers. The number of messages costs more than their size. So one
 * message carries all questions of a turn of the event loop, and another carries all answers of a tick.
 */
import type { Worker } from 'node:worker_threads';
import { ApiError, StoreError } from '../api/errors.js';
import { DatabaseMissing } from '../store/errors.js';
import { TableError } from '../tables/finding.js';

export interface Question {
	id: number;
	method: string;
	value: unknown;
	isStoppable?: true;
}

export type Answer = { id: number } & (
	| { kind: 'value'; value: unknown }
	| { kind: 'failure'; failure: Failure }
);

interface Waiting {
	resolve(value: unknown): void;
	reject(error: unknown): void;
}

interface ChannelOptions<Failed> {
	failed(why: string, cause: unknown): Failed;
	onFailure(error: Failed): void;
}

export class Channel<Failed extends Error = Error> {
	readonly #worker: Worker;
	readonly #options: ChannelOptions<Failed>;
	/** An object, not a Map, because V8 kept the answers of a grown Map in memory until a full garbage collection. */
	readonly #waiting: Record<number, Waiting> = {};
	#queued: Question[] = [];
	#lastId = 0;
	#ended: Error | null = null;

	constructor(worker: Worker, options: ChannelOptions<Failed>) {
		this.#worker = worker;
		this.#options = options;
		const fail = (cause: unknown) => {
			if (this.#ended !== null) return;
			const why = cause instanceof Error ? cause.message : cause;
			const error = options.failed(`has failed: ${why}`, cause);
			this.#stop(error);
			options.onFailure(error);
		};
		worker
			.on('message', (answers: readonly Answer[]) => this.#take(answers))
			.on('messageerror', fail)
			.on('error', fail)
			.on('exit', (code) => fail(`it ended with ${code}`));
	}

	/** Rejects with the error of the method, the reason of the signal, or a `failed` error if the thread has ended. */
	async ask(method: string, value: unknown, signal?: AbortSignal): Promise<unknown> {
		if (signal === undefined) return this.#ask({ method, value });
		signal.throwIfAborted();
		const asked = this.#ask({ method, value, isStoppable: true });
		const id = this.#lastId;
		const stop = () => void this.#ask({ method: 'stop', value: id }).catch(() => undefined);
		signal.addEventListener('abort', stop, { once: true });
		try {
			return await asked;
		} catch (error) {
			throw error instanceof Error && error.name === 'Stopped' ? signal.reason : error;
		} finally {
			signal.removeEventListener('abort', stop);
		}
	}

	ref(): void {
		this.#worker.ref();
	}

	unref(): void {
		this.#worker.unref();
	}

	async end(reason: Error = this.#options.failed('is closed', null)): Promise<void> {
		this.#stop(reason);
		await this.#worker.terminate();
	}

	#ask(question: Omit<Question, 'id'>): Promise<unknown> {
		return new Promise<unknown>((resolve, reject) => {
			if (this.#ended !== null) return reject(this.#ended);
			this.#lastId += 1;
			this.#waiting[this.#lastId] = { resolve, reject };
			if (this.#queued.length === 0) setImmediate(() => this.#send(this.#queued.splice(0)));
			this.#queued.push({ id: this.#lastId, ...question });
		});
	}

	#send(questions: readonly Question[]): void {
		try {
			this.#worker.postMessage(questions);
		} catch (error) {
			// One question that cannot be cloned fails the whole message, so send each question alone.
			if (questions.length > 1) for (const question of questions) this.#send([question]);
			else for (const { id } of questions) this.#waiterOf(id)?.reject(error);
		}
	}

	#take(answers: readonly Answer[]): void {
		for (const answer of answers) {
			const waiter = this.#waiterOf(answer.id);
			if (answer.kind === 'value') waiter?.resolve(answer.value);
			else waiter?.reject(parseFailure(answer.failure));
		}
	}

	#waiterOf(id: number): Waiting | undefined {
		const waiter = this.#waiting[id];
		delete this.#waiting[id];
		return waiter;
	}

	#stop(reason: Error): void {
		this.#ended ??= reason;
		for (const id of Object.keys(this.#waiting)) this.#waiterOf(Number(id))?.reject(this.#ended);
	}
}

export interface Failure {
	/** Index of the error's class in `classes`; -1 for any other class. */
	kind: number;
	message: string;
	stack: string | null;
	cause: string | null;
	members: object;
}

const classes = [StoreError, DatabaseMissing, ApiError, TableError] as const;

export function formatFailure(thrown: unknown): Failure {
	const error = thrown instanceof Error ? thrown : new Error(String(thrown));
	const { name, message, stack = null, cause } = error;
	const kind = classes.findIndex((one) => error instanceof one);
	const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
	return {
		...{ kind, message, stack },
		cause: cause == null ? null : cause instanceof Error ? cause.message : String(cause),
		members: kind === -1 ? { name, ...code } : { ...error },
	};
}

export function parseFailure({ kind, message, stack, cause, members }: Failure): Error {
	const because = cause === null ? {} : { cause: new Error(cause) };
	const error = Object.assign(new Error(message, because), members, stack === null ? {} : { stack });
	return Object.setPrototypeOf(error, (classes[kind] ?? Error).prototype);
}
