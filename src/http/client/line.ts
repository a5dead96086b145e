/** What calls of a client are made of: what they share, what one asks for, what it got. */
import type { Call } from '../../api/api.js';
import type { Clock } from '../../api/datetime.js';
import type { Operation } from '../routes.js';
import type { Asked } from './refusals.js';
import type { Answer, Transport } from './transport.js';

/** What every call of a client shares. */
export interface Line {
	transport: Transport;
	/** Path of the base URL, without a slash at its end. */
	prefix: string;
	token: string | null;
	timeoutMs: number;
	retries: number;
	trace: (line: string) => void;
	random: () => number;
	clock: Clock;
}

/** One operation to be carried out. */
export interface Ask {
	operation: Operation;
	/** For the path. */
	values?: Readonly<Record<string, string | number>>;
	/** With its `?`, or empty. */
	query?: string;
	body?: unknown;
	headers?: Readonly<Record<string, string>>;
	call?: Call | undefined;
	/** Overrides what the method says. */
	isRepeatable?: boolean;
}

/** A 2xx, and what was asked, for complaints about it. */
export interface Success {
	answer: Answer;
	asked: Asked;
}
