/** One row of the table: the behaviour of a server, and the expected outcome of a message. */
import type { SmtpSettings } from '../../../src/delivery/smtp/settings.js';
import type { Fault, FaultPhase, FaultScript } from '../../support/smtp-fault.js';

export interface Row {
	name: string;
	script: FaultScript;
	expected: Expected;
	settings?: Partial<SmtpSettings>;
	/** Bulk mail cannot have cc or bcc, so a row with them runs only as transactional mail. */
	cc?: readonly string[];
	bcc?: readonly string[];
	to?: string;
	text?: string;
	/** The number of messages sent on the same connection before this one. */
	before?: number;
	isClosed?: true;
}

export type Expected =
	/** The queue is paused, and the message is unchanged. */
	| { kind: 'paused'; reason: RegExp }
	/** `uncounted`: failed, but not counted as a bounce. */
	| ({ kind: 'sent' | 'deferred' | 'failed' | 'uncounted' | 'bounced' | 'uncertain' } & Attempt);

export interface Attempt {
	phase: 'mail' | 'rcpt' | 'data' | 'body' | 'answer';
	code: number | null;
	enhanced: string | null;
	text: RegExp | string;
}

export const silent: Fault = { hang: true };
export const dropped: Fault = { drop: true };
export const halfClosed: Fault = { halfClose: true };
/** One byte every 20 ms: each arrives within the reply timeout, but the reply never ends. */
export const slow: Fault = { drip: '250-x', everyMs: 20 };
export const flood: Fault = { flood: 5_000_000 };
export const garbage: Fault = { answer: 'hello there' };

export function says(answer: string): Fault {
	return { answer };
}

export function saysAndLeaves(answer: string): Fault {
	return { answer, thenClose: true };
}

export function paused(reason: RegExp): Expected {
	return { kind: 'paused', reason };
}

/** `reply` as the server sends it: code, optional enhanced code, text. */
export function becomes(
	kind: Exclude<Expected['kind'], 'paused'>,
	phase: Attempt['phase'],
	reply: string,
): Expected {
	const [, code, enhanced, text] = /^(\d{3})(?: ([245]\.\d+\.\d+))? ?(.*)$/s.exec(reply) ?? [];
	if (code === undefined || text === undefined) throw new Error(`no reply: ${reply}`);
	return { kind, phase, code: Number(code), enhanced: enhanced ?? null, text };
}

export function breaks(
	kind: 'deferred' | 'uncertain',
	phase: Attempt['phase'],
	text: RegExp | string,
): Expected {
	return { kind, phase, code: null, enhanced: null, text };
}

export function at(phase: FaultPhase, fault: Fault): FaultScript {
	return { at: { [phase]: fault } };
}

/** Applies the fault after a number of mails on the connection. */
export function after(mails: number, phase: FaultPhase, fault: Fault): FaultScript {
	return {
		on: (where, _line, connection) => (where === phase && connection.mails > mails ? fault : undefined),
	};
}

export function row(name: string, script: FaultScript, expected: Expected, more: Partial<Row> = {}): Row {
	return { name, script, expected, ...more };
}
