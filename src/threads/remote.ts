/** The store's operations as messages between threads. */
import {
	ApiError,
	type ApiErrorCode,
	type FieldErrors,
	StoreError,
	type StoreErrorCode,
} from '../api/errors.js';
import { DatabaseMissing } from '../store/errors.js';
import type { OpenOptions } from '../store/open.js';
import { type Command, driverOf, type Parts, type Run } from '../store/operations.js';
import type { Leased, Queue } from '../store/queue.js';
import type { Reads, TrackedEvent, Writes } from '../store/store.js';
import { TableError, type TableErrorOptions, type TableFault } from '../tables/finding.js';

export interface Operation {
	id: number;
	part: 'thread' | keyof Parts;
	method: string;
	command: unknown;
	/** A later `stop` with this id aborts it. */
	isStoppable?: true;
}

export type Answer = { id: number } & (
	| { kind: 'value'; value: unknown }
	| { kind: 'failure'; failure: Failure }
);

export interface OpenCommand {
	role: 'writer' | 'reader';
	url: string;
	/** Without the clock: a thread uses the machine's. */
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
		// These are most of the messages, and JSON takes 0.6 to 0.7 of the time of a copy.
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

export class Stopped extends Error {
	override readonly name = 'Stopped';
}

export function isStopped(error: unknown): boolean {
	return error instanceof Error && error.name === 'Stopped';
}

/** An error loses its class between threads. */
export type Failure = { message: string; stack: string | null; cause: string | null } & (
	| { kind: 'store'; code: StoreErrorCode }
	| { kind: 'missing'; path: string }
	| { kind: 'api'; code: ApiErrorCode; fields: FieldErrors | null }
	| { kind: 'table'; code: TableFault; options: TableErrorOptions }
	| { kind: 'other'; name: string; code: string | null }
);

export function formatFailure(thrown: unknown): Failure {
	if (!(thrown instanceof Error))
		return formatFailure(Object.assign(new Error(String(thrown)), { stack: null }));
	const { cause } = thrown;
	const why = cause instanceof Error ? cause.message : String(cause);
	const told = { message: thrown.message, stack: thrown.stack ?? null, cause: cause == null ? null : why };
	if (thrown instanceof StoreError) return { kind: 'store', code: thrown.code, ...told };
	if (thrown instanceof DatabaseMissing) return { kind: 'missing', path: thrown.path, ...told };
	if (thrown instanceof ApiError) return { kind: 'api', code: thrown.code, fields: thrown.fields, ...told };
	if (thrown instanceof TableError) {
		const { code, hint, details } = thrown;
		const options = { ...(hint !== null && { hint }), ...(details !== null && { details }) };
		return { kind: 'table', code, options, ...told };
	}
	const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : null;
	return { kind: 'other', name: thrown.name, code, ...told };
}

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
		case 'api':
			return new ApiError(failure.code, message, {
				...because,
				...(failure.fields !== null && { fields: failure.fields }),
			});
		case 'table':
			return new TableError(failure.code, message, failure.options);
		case 'other':
			return Object.assign(
				new Error(message, because),
				{ name: failure.name },
				failure.code === null ? {} : { code: failure.code },
			);
	}
}
