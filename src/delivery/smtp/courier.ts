import { backoff } from '../../api/backoff.js';
import { type Clock, type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import { refusedSenderReason } from '../../api/pauses.js';
import type { DeliveryOutcome, Reply } from '../../engine/rules/outcomes.js';
import type { Leased } from '../../store/queue.js';
import type { Composer } from '../composer.js';
import type { Courier, Telling } from '../courier.js';
import { SharedBytes } from '../files.js';
import { InFlight } from '../leases.js';
import { classify, formatReply, type Verdict } from '../reply.js';
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
	const shared = new SharedBytes();
	const report = (
		message: Leased,
		conversation: Conversation,
		tell: Telling,
		sender = '',
		isShared = false,
	) => {
		const { verdict } = classify(conversation, isShared);
		const { kind, reply } = conversation;
		// While mailctl stops, it closes connections, so a connection lost before the answer is not the server's fault.
		const outcome: DeliveryOutcome =
			isCutting && kind === 'broken' && reply.phase !== 'answer'
				? { kind: 'released', why: 'drain' }
				: outcomeOf(verdict, message, conversation, { now: clock.now(), random });
		if (verdict === 'sender') tell.refused(refusedSenderReason(sender, formatReply(reply)));
		else if (outcome.kind !== 'released' && kind !== 'unsendable') tell.worked(verdict === 'sent');
		if (outcome.kind === 'released' && outcome.why === 'infrastructure') tell.failed(formatReply(reply));
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
				if (composed.kind === 'unsendable') report(message, composed.conversation, tell);
				else {
					const { bytes, rest = [] } = composed.mail;
					tell.holds(bytes.length + shared.hold(rest));
					const conversation = await pool.send(composed.mail);
					shared.release(rest);
					composed.release?.();
					report(message, conversation, tell, composed.sender, composed.mail.copies.length > 0);
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

/** A server may require a login for one recipient only. So this message waits, and the worker sends others first. */
const stepBackMicros = 60 * microsPerSecond;

function outcomeOf(
	verdict: Verdict,
	message: Leased,
	conversation: Conversation,
	c: { now: Micros; random: () => number },
): DeliveryOutcome {
	const reply = replyWithCopies(conversation);
	switch (verdict) {
		case 'sent':
		case 'uncertain':
		case 'failed':
			return { kind: verdict, reply };
		case 'hard':
			return { kind: 'bounced', reply, suppress: true };
		case 'content':
			return { kind: 'failed', reply, uncounted: true };
		case 'infrastructure': {
			const isAboutOne = reply.phase === 'rcpt' || reply.phase === 'data';
			const due = isAboutOne && { due_at: c.now + stepBackMicros };
			return { kind: 'released', why: 'infrastructure', ...due };
		}
		case 'deferred':
		case 'sender': {
			const due_at = retryAt({ ...c, attempts: message.attempts + 1, createdAt: message.created_at });
			if (due_at !== null) return { kind: 'deferred', reply, due_at };
			// After the last attempt, a transient refusal of the sender counts like a permanent one. So classify it as 5xx.
			const permanent = { ...conversation.reply, code: 500 + ((conversation.reply.code ?? 0) % 100) };
			const isSenders = classify({ kind: conversation.kind, reply: permanent }).verdict === 'sender';
			return { kind: 'failed', reply, ...(isSenders && { uncounted: true }) };
		}
	}
}

function replyWithCopies({ reply, refusedCopies }: Conversation): Reply {
	if (refusedCopies.length === 0) return reply;
	const refused = refusedCopies.map((copy) => `${copy.to} (${formatReply(copy.reply)})`).join(', ');
	return { ...reply, text: `${reply.text} [copies refused: ${refused}]`.slice(0, 500) };
}

const delays = { first: 5 * 60 * microsPerSecond, longest: 4 * 3_600 * microsPerSecond };
const jitter = 0.1;
/** RFC 5321 s.4.5.4.1 recommends 4 to 5 days. */
const giveUpAfter = 4 * microsPerDay;
/** Minimum number of attempts. A campaign staged or paused for days is already old at its first attempt. */
const leastAttempts = 3;

export function retryAt(c: {
	attempts: number;
	createdAt: Micros;
	now: Micros;
	random: () => number;
}): Micros | null {
	const end = c.createdAt + giveUpAfter;
	const isOld = c.now >= end;
	if (isOld && c.attempts >= leastAttempts) return null;
	const delay = backoff(delays, Math.max(c.attempts, 1));
	const due = Math.round(c.now + delay * (1 - jitter + 2 * jitter * c.random()));
	return isOld ? due : Math.min(due, Math.max(end, c.now + 1));
}
