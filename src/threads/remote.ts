import { ApiError, StoreError } from '../api/errors.js';
import { DatabaseMissing } from '../store/errors.js';
import type { OpenOptions } from '../store/open.js';
import { type Parts, traitsOf } from '../store/operations.js';
import { TableError } from '../tables/finding.js';

export interface Operation {
	id: number;
	part: 'thread' | keyof Parts;
	method: string;
	command: unknown;
	isStoppable?: true;
}

export type Answer = { id: number } & (
	| { kind: 'value'; value: unknown }
	| { kind: 'failure'; failure: Failure }
);

export interface OpenCommand {
	role: 'writer' | 'reader';
	url: string;
	/** Excludes the clock, which cannot be copied, so a thread uses the machine's. */
	options: Omit<OpenOptions, 'clock'>;
}

export function pack(operation: string, value: unknown): unknown {
	return traitsOf(operation).isFrequent ? JSON.stringify(value) : value;
}

export function unpack(operation: string, packed: unknown): unknown {
	return traitsOf(operation).isFrequent && typeof packed === 'string' ? JSON.parse(packed) : packed;
}

/** The reason for the abort stays in the caller's thread. */
export class Stopped extends Error {
	override readonly name = 'Stopped';
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
