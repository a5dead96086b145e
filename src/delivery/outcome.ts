/** What is recorded about a message after a conversation about it. */
import type { Micros } from '../api/datetime.js';
import type { DeliveryOutcome, Leased, Reply } from '../store/queue.js';
import { classify } from './classify.js';
import type { Conversation } from './conversation.js';
import { formatReply } from './reply.js';
import { nextAttempt } from './schedule.js';

/**
 * `message.attempts` are those before this one. An infrastructure fault releases the message untouched. Copies that
 * were refused do not change its fate; the reply names them.
 */
export function outcomeOf(
	message: Pick<Leased, 'attempts' | 'created_at'>,
	conversation: Conversation,
	c: { now: Micros; random: () => number },
): DeliveryOutcome {
	const reply = replyWithCopies(conversation);
	const { verdict } = classify(conversation);
	switch (verdict) {
		case 'sent':
			return { kind: 'sent', reply };
		case 'hard':
			return { kind: 'bounced', reply, suppress: true };
		case 'failed':
			return { kind: 'failed', reply };
		case 'uncertain':
			return { kind: 'uncertain', reply };
		case 'infrastructure':
			return { kind: 'released', why: 'infrastructure' };
		case 'deferred':
			return deferred(message, reply, c);
	}
}

function deferred(
	message: Pick<Leased, 'attempts' | 'created_at'>,
	reply: Reply,
	c: { now: Micros; random: () => number },
): DeliveryOutcome {
	const next = nextAttempt({ ...c, attempts: message.attempts + 1, createdAt: message.created_at });
	return next.kind === 'give_up'
		? { kind: 'failed', reply }
		: { kind: 'deferred', reply, due_at: next.due_at };
}

function replyWithCopies({ reply, refusedCopies }: Conversation): Reply {
	if (refusedCopies.length === 0) return reply;
	const refused = refusedCopies.map((copy) => `${copy.to} (${formatReply(copy.reply)})`).join(', ');
	return { ...reply, text: `${reply.text} [copies refused: ${refused}]`.slice(0, 500) };
}
