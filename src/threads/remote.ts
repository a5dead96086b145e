/** The store's operations as messages between threads: a store that sends messages, and its other end. */
import {
	ApiError,
	type ApiErrorCode,
	type FieldErrors,
	StoreError,
	type StoreErrorCode,
} from '../api/errors.js';
import { DatabaseMissing, UnsupportedDatabase } from '../store/errors.js';
import type { OpenOptions } from '../store/open.js';
import { type Command, driverOf, type Parts, type Run } from '../store/operations.js';
import type { Leased, Queue } from '../store/queue.js';
import type { Reads, TrackedEvent, Writes } from '../store/store.js';

/** `thread`: `open`, `stop` and `close`; the others are the parts of the store. */
export interface Operation {
	id: number;
	part: 'thread' | keyof Parts;
	method: string;
	command: unknown;
	/** A later `stop` of the thread, whose command is this id, aborts it. */
	isStoppable?: true;
}

export type Answer = { id: number } & (
	| { kind: 'value'; value: unknown }
	| { kind: 'failure'; failure: Failure }
);

/** The database connection a thread opens: the store that writes, or one that only reads. */
export interface OpenCommand {
	role: 'writer' | 'reader';
	url: string;
	/** Without the clock: a thread uses the machine's own. */
	options: Omit<OpenOptions, 'clock'>;
}

export function remoteReads(run: Run): Reads {
	return driverOf('reads', run);
}

export function remoteWrites(run: Run): Writes {
	return {
		...driverOf('writes', run),
		recordEvents: async ({ events }) => {
			await run('recordEvents', JSON.stringify(events));
		},
	};
}

export function servedWrites(writes: Writes): Omit<Writes, 'recordEvents'> & { recordEvents: unknown } {
	return {
		...writes,
		recordEvents: (events: string) => writes.recordEvents({ events: JSON.parse(events) as TrackedEvent[] }),
	};
}

export function remoteQueue(run: Run): Queue {
	return {
		...driverOf('queue', run),
		// Of all that threads tell each other these are by far the most, and JSON takes 0.6 to 0.7 of the time of a copy.
		lease: async (command) => JSON.parse(String(await run('lease', command))) as Leased[],
		settle: (command) => run('settle', JSON.stringify(command)) as ReturnType<Queue['settle']>,
	};
}

export function servedQueue(
	queue: Queue,
): Omit<Queue, 'lease' | 'settle'> & { lease: unknown; settle: unknown } {
	return {
		...queue,
		lease: async (command: Command<'lease'>) => JSON.stringify(await queue.lease(command)),
		settle: (command: string) => queue.settle(JSON.parse(command) as Command<'settle'>),
	};
}

/** What stopped an operation there: its reason stays in the thread of the signal. */
export class Stopped extends Error {
	override readonly name = 'Stopped';
}

export function isStopped(error: unknown): boolean {
	return error instanceof Error && error.name === 'Stopped';
}

interface Told {
	message: string;
	stack: string | null;
	/** The message of the cause; the cause itself stays in its thread. */
	cause: string | null;
}

export type Failure = Told &
	(
		| { kind: 'store'; code: StoreErrorCode }
		| { kind: 'missing'; path: string }
		| { kind: 'unsupported'; scheme: string }
		| { kind: 'api'; code: ApiErrorCode; fields: FieldErrors | null }
		| { kind: 'other'; name: string; code: string | null }
	);

/** For anything thrown; a value that is not an `Error` becomes one with its text. */
export function formatFailure(error: unknown): Failure {
	if (!(error instanceof Error)) {
		return { kind: 'other', name: 'Error', code: null, message: String(error), stack: null, cause: null };
	}
	const told = { message: error.message, stack: error.stack ?? null, cause: causeOf(error) };
	if (error instanceof StoreError) return { kind: 'store', code: error.code, ...told };
	if (error instanceof DatabaseMissing) return { kind: 'missing', path: error.path, ...told };
	if (error instanceof UnsupportedDatabase) return { kind: 'unsupported', scheme: error.scheme, ...told };
	if (error instanceof ApiError) return { kind: 'api', code: error.code, fields: error.fields, ...told };
	const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
	return { kind: 'other', name: error.name, code, ...told };
}

/**
 * The error to throw here: errors of store and API by class and code, others by name; with the stack of the other
 * thread.
 */
export function parseFailure(failure: Failure): Error {
	const error = rebuild(failure);
	if (failure.stack !== null) error.stack = failure.stack;
	return error;
}

function rebuild(failure: Failure): Error {
	const { message } = failure;
	const because = failure.cause === null ? {} : { cause: new Error(failure.cause) };
	switch (failure.kind) {
		case 'store':
			return new StoreError(failure.code, message, because);
		case 'missing':
			return new DatabaseMissing(failure.path);
		case 'unsupported':
			return new UnsupportedDatabase(failure.scheme);
		case 'api': {
			const fields = failure.fields === null ? {} : { fields: failure.fields };
			return new ApiError(failure.code, message, { ...fields, ...because });
		}
		case 'other':
			return Object.assign(
				new Error(message, because),
				{ name: failure.name },
				failure.code === null ? {} : { code: failure.code },
			);
	}
}

function causeOf({ cause }: Error): string | null {
	if (cause === undefined || cause === null) return null;
	return cause instanceof Error ? cause.message : String(cause);
}
