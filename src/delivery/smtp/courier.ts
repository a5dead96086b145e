import { backoff } from '../../api/backoff.js';
import { type Clock, type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import { refusedSenderReason } from '../../api/pauses.js';
import type { DeliveryOutcome, Reply } from '../../engine/rules/outcomes.js';
import type { Leased } from '../../store/queue.js';
import type { Composer } from '../composer.js';
import type { Courier, Telling } from '../courier.js';
import { createSharedBytes } from '../files.js';
import { InFlight } from '../leases.js';
import { classify, formatReply } from '../reply.js';
import type { SmtpPool } from './pool.js';
import type { Conversation } from './transaction.js';

interface SmtpCourierOptions {
	composer: Composer;
	pool: Pick<SmtpPool, 'send' | 'halt' | 'abort'>;
	clock: Clock;
	random: () => number;
	connections: number;
}

export function createSmtpCourier(options: SmtpCourierOptions): Courier {
	const { composer, pool, clock, random, connections } = options;
	let isCutting = false;
	const shared = createSharedBytes();
	const report = (
		message: Leased,
		conversation: Conversation,
		tell: Telling,
		{ sender, isShared }: { sender: string; isShared: boolean },
	) => {
		const { verdict } = classify(conversation, isShared);
		const outcome = judge(message, conversation, { now: clock.now(), random, isCutting, isShared });
		if (verdict === 'sender') tell.refused(refusedSenderReason(sender, formatReply(conversation.reply)));
		else if (outcome.kind !== 'released' && conversation.kind !== 'unsendable')
			tell.worked(verdict === 'sent');
		if (outcome.kind === 'released' && outcome.why === 'infrastructure')
			tell.failed(formatReply(conversation.reply));
		tell.settled(message, outcome);
	};
	return {
		window: new InFlight(connections),
		mostTogether: 1,
		mostUnderWay: 3 * connections,
		leaseBatch: 100,
		settles: 'in_groups',
		expect: (messages) => composer.expect(messages),
		deliver: async (group, tell) => {
			for (const message of group) {
				const composed = await composer.compose(message);
				if (composed.kind === 'unsendable')
					report(message, composed.conversation, tell, { sender: '', isShared: false });
				else {
					const { bytes, rest = [] } = composed.mail;
					tell.holds(bytes.length + shared.hold(rest));
					const conversation = await pool.send(composed.mail);
					shared.release(rest);
					composed.release?.();
					const isShared = composed.mail.copies.length > 0;
					report(message, conversation, tell, { sender: composed.sender, isShared });
				}
			}
		},
		halt: () => {
			isCutting = true;
			pool.halt();
		},
		abort: () => pool.abort(),
	};
}

export function outcomeOf(
	message: Pick<Leased, 'attempts' | 'created_at'>,
	conversation: Conversation,
	c: { now: Micros; random: () => number; isShared?: boolean },
): DeliveryOutcome {
	const reply = replyWithCopies(conversation);
	const { verdict } = classify(conversation, c.isShared);
	switch (verdict) {
		case 'sent':
			return { kind: 'sent', reply };
		case 'hard':
			return { kind: 'bounced', reply, suppress: true };
		case 'failed':
			return { kind: 'failed', reply };
		case 'content':
			return { kind: 'failed', reply, uncounted: true };
		case 'uncertain':
			return { kind: 'uncertain', reply };
		case 'infrastructure':
			return { kind: 'released', why: 'infrastructure' };
		case 'deferred':
		case 'sender':
			return deferred(message, conversation, { ...c, reply });
	}
}

function deferred(
	message: Pick<Leased, 'attempts' | 'created_at'>,
	conversation: Conversation,
	{ reply, ...c }: { reply: Reply; now: Micros; random: () => number },
): DeliveryOutcome {
	const next = nextAttempt({ ...c, attempts: message.attempts + 1, createdAt: message.created_at });
	if (next.kind !== 'give_up') return { kind: 'deferred', reply, due_at: next.due_at };
	// A message that fails after transient refusals of the sender counts like one after a permanent refusal.
	const permanent = { ...conversation.reply, code: 500 + ((conversation.reply.code ?? 0) % 100) };
	const isSenders = classify({ kind: conversation.kind, reply: permanent }).verdict === 'sender';
	return { kind: 'failed', reply, ...(isSenders && { uncounted: true }) };
}

function replyWithCopies({ reply, refusedCopies }: Conversation): Reply {
	if (refusedCopies.length === 0) return reply;
	const refused = refusedCopies.map((copy) => `${copy.to} (${formatReply(copy.reply)})`).join(', ');
	return { ...reply, text: `${reply.text} [copies refused: ${refused}]`.slice(0, 500) };
}

/** A reply about one recipient may concern only that recipient, so send other messages first for this long. */
const stepBackMicros = 60 * microsPerSecond;

/** `isCutting`: this process cuts slow conversations, so a break before the answer is not the server's fault. */
export function judge(
	message: Leased,
	conversation: Conversation,
	c: { now: Micros; random: () => number; isCutting: boolean; isShared: boolean },
): DeliveryOutcome {
	const { phase } = conversation.reply;
	if (c.isCutting && conversation.kind === 'broken' && phase !== 'answer')
		return { kind: 'released', why: 'drain' };
	const outcome = outcomeOf(message, conversation, c);
	const isAboutOne = phase === 'rcpt' || phase === 'data';
	return outcome.kind === 'released' && isAboutOne ? { ...outcome, due_at: c.now + stepBackMicros } : outcome;
}

type NextAttempt = { kind: 'retry'; due_at: Micros } | { kind: 'give_up' };

const delays = { first: 5 * 60 * microsPerSecond, longest: 4 * 3_600 * microsPerSecond };
const jitter = 0.1;
/** RFC 5321 s.4.5.4.1 recommends 4 to 5 days. */
const giveUpAfter = 4 * microsPerDay;
/** A campaign staged for days, or held by a paused queue, is already old at its first attempt. */
const leastAttempts = 3;

/** Waits 5 min, doubling to 4 h, ±10 %. The last attempt is at the end of the fourth day, or the third one if later. */
export function nextAttempt(c: {
	attempts: number;
	createdAt: Micros;
	now: Micros;
	random: () => number;
}): NextAttempt {
	const end = c.createdAt + giveUpAfter;
	const isOld = c.now >= end;
	if (isOld && c.attempts >= leastAttempts) return { kind: 'give_up' };
	const delay = backoff(delays, Math.max(c.attempts, 1));
	const due = Math.round(c.now + delay * (1 - jitter + 2 * jitter * c.random()));
	return { kind: 'retry', due_at: isOld ? due : Math.min(due, Math.max(end, c.now + 1)) };
}
