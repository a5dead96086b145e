/** What the outcome of a delivery changes: the state table of messages, as data. */
import type { Micros } from '../../api/datetime.js';
import type { MessageState } from '../../api/records.js';
import type { DeliveryOutcome, Reply } from '../../store/queue.js';

export interface OutcomeEffect {
	state: MessageState;
	/** When a worker may take it again; null = final. */
	due_at: Micros | null;
	/** The attempt to be written; null = there was none. */
	reply: Reply | null;
	/** The event it is counted as, once a message. */
	event: 'SENT' | 'SOFTBOUNCED' | 'HARDBOUNCED' | null;
	/** The address gets no more mail. */
	suppresses: boolean;
}

/** `before` is the message as it was before its lease: what `released` gives back. */
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
		case 'failed':
			return { ...final, state: 'failed', reply: outcome.reply, event: 'SOFTBOUNCED' };
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

/** `250 2.0.0 Ok`: a reply in one line; the local reason alone when no server said anything. */
export function replyLine({ code, enhanced, text }: Reply): string {
	return [code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
}
