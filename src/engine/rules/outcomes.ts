/** The effects of a delivery's outcome: the state table of messages, as data. */
import type { Micros } from '../../api/datetime.js';
import type { MessageState } from '../../api/records.js';

export type DeliveryOutcome =
	| { kind: 'sent'; reply: Reply }
	| { kind: 'deferred'; reply: Reply; due_at: Micros }
	| { kind: 'uncertain'; reply: Reply }
	| { kind: 'bounced'; reply: Reply; suppress: boolean }
	/** `uncounted`: for its content, or the sender: it is not a bounce of the address. */
	| { kind: 'failed'; reply: Reply; uncounted?: true }
	/** A service answered the call without making a message. */
	| { kind: 'suppressed'; reply: Reply }
	/** `due_at`: not before, so that another message is tried first; absent = unchanged. */
	| { kind: 'released'; why: 'infrastructure' | 'drain'; due_at?: Micros };

/** The phase in which a conversation ended; `answer` = after the final dot, waiting for the reply. */
export type SmtpPhase = 'connect' | 'tls' | 'greeting' | 'ehlo' | 'auth' | TransactionPhase;
type TransactionPhase = 'mail' | 'rcpt' | 'data' | 'body' | 'answer';

/**
 * A server's reply, or the local reason for its absence (`code` null). `text` ≤ 500 characters, cleaned of CR and LF.
 * For a send API (`call`) `code` is the HTTP status, `enhanced` the error's code, and `text` for an accepted message
 * the API's id.
 */
export interface Reply {
	phase: SmtpPhase | 'call';
	code: number | null;
	enhanced: string | null;
	text: string;
}

export interface OutcomeEffect {
	state: MessageState;
	/** When a worker may lease it again; null = final. */
	due_at: Micros | null;
	/** The attempt to be recorded; null = none. */
	reply: Reply | null;
	/** The event that counts it, once a message. */
	event: 'SENT' | 'SOFTBOUNCED' | 'HARDBOUNCED' | null;
	/** The address gets no more mail. */
	suppresses: boolean;
}

/** `before` is the message before its lease, which `released` restores. */
export function effectOf(
	outcome: DeliveryOutcome,
	before: { attempts: number; due_at: Micros },
): OutcomeEffect {
	const final = { due_at: null, suppresses: false };
	switch (outcome.kind) {
		case 'sent':
			return { ...final, state: 'sent', reply: outcome.reply, event: 'SENT' };
		case 'deferred':
			return { ...final, state: 'deferred', due_at: outcome.due_at, reply: outcome.reply, event: null };
		case 'uncertain':
			return { ...final, state: 'uncertain', reply: outcome.reply, event: null };
		case 'bounced':
			return {
				...final,
				state: 'bounced',
				reply: outcome.reply,
				event: 'HARDBOUNCED',
				suppresses: outcome.suppress,
			};
		case 'suppressed':
			return { ...final, state: 'canceled', reply: outcome.reply, event: null };
		case 'failed':
			return {
				...final,
				state: 'failed',
				reply: outcome.reply,
				event: outcome.uncounted ? null : 'SOFTBOUNCED',
			};
		case 'released':
			return {
				...final,
				state: before.attempts > 0 ? 'deferred' : 'queued',
				due_at: outcome.due_at ?? before.due_at,
				reply: null,
				event: null,
			};
	}
}

/** An event that may stop mail to the address. */
export function isBounce(outcome: DeliveryOutcome): boolean {
	return outcome.kind === 'bounced' || (outcome.kind === 'failed' && !outcome.uncounted);
}

/** `250 2.0.0 Ok`: a reply in one line; only the local reason where no server replied. */
export function replyLine({ code, enhanced, text }: Reply): string {
	return [code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
}

/** The answer of a server, from such a line. An enhanced code belongs to the text where the reply had it there. */
export function readReplyLine(line: string): Reply {
	const [, code, enhanced = null, text = ''] =
		/^(\d{3})(?: (\d\.\d{1,3}\.\d{1,3}))?(?: (.*))?$/s.exec(line) ?? [];
	if (code === undefined) return { phase: 'answer', code: null, enhanced: null, text: line };
	return { phase: 'answer', code: Number(code), enhanced, text };
}
