/** What a run makes of a conversation: the outcome, and how a message is given back that the server would not talk about. */
import { type Micros, microsPerSecond } from '../api/datetime.js';
import type { DeliveryOutcome, Leased } from '../store/queue.js';
import type { Conversation } from './conversation.js';
import { outcomeOf } from './outcome.js';

/**
 * What was said to one recipient may be the matter with that one alone, whatever the table thinks: after this time it
 * is tried again, and another message before it, so that it cannot stop the queue for good.
 */
const stepBackMicros = 60 * microsPerSecond;

/** `isCutting`: this side cuts what takes too long, so that a break before the dot's answer is no word of the server. */
export function judge(
	message: Leased,
	conversation: Conversation,
	c: { now: Micros; random: () => number; isCutting: boolean },
): DeliveryOutcome {
	const { phase } = conversation.reply;
	if (c.isCutting && conversation.kind === 'broken' && phase !== 'answer')
		return { kind: 'released', why: 'drain' };
	const outcome = outcomeOf(message, conversation, c);
	const isAboutOne = phase === 'rcpt' || phase === 'data';
	return outcome.kind === 'released' && isAboutOne ? { ...outcome, due_at: c.now + stepBackMicros } : outcome;
}
