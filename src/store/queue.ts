/** Messages on their way to the mail server: leased, delivered outside any transaction, settled. */

import type { EmailKey } from '../api/address.js';
import type { MessageScope } from '../api/capabilities.js';
import type { Micros } from '../api/datetime.js';
import type { LimitName, MessageState, Uuid } from '../api/records.js';

/** Messages on their way to the mail server. */
export interface Queue {
	/**
	 * Leases up to `max` due messages, fairly over mailings, transactional first. Expired leases return to the queue.
	 * Suppression is checked again: bulk to a suppressed address becomes `canceled` and is not returned. What a limit of
	 * the settings holds back stays queued, costs no attempt and lets others pass (`Reads.nextTurn`).
	 */
	lease(c: {
		/** `host:pid:…`, unique: whoever opens the database to stay gives back leases of processes that are gone. */
		owner: string;
		now: Micros;
		until: Micros;
		max: number;
		scope: MessageScope | null;
		/** At most so many messages a second, together with whoever else asks for a rate; absent: none of its own. */
		perSecond?: number;
	}): Promise<Leased[]>;
	renew(c: { owner: string; fences: readonly Fence[]; until: Micros }): Promise<void>;
	/** State, attempt, figures, suppression, subscriber and events of each message in one operation. */
	settle(c: { settlements: readonly Settlement[] }): Promise<('recorded' | 'lost_lease')[]>;
	/**
	 * A `manual` pause: nothing is leased until somebody resumes. A `fault` is told to other workers, who wait for its
	 * `retry_at`; whoever leases all the same finds out sooner that it is over. The same kind again keeps its `since`.
	 */
	pause(c: {
		kind: QueuePause['kind'];
		reason: string | null;
		retry_at: Micros | null;
		now: Micros;
	}): Promise<QueuePause>;
	/** False: there was no pause of these kinds. */
	resume(c: { kinds: readonly QueuePause['kind'][] }): Promise<boolean>;
}

/** Why nothing new is begun, for every process that works on the queue. */
export interface QueuePause {
	/** `manual`: by a person. `fault`: login, TLS, connection, or a mail server that refuses everybody. */
	kind: 'manual' | 'fault';
	/** A person's words, which may be missing; of a fault, where it was met and what was said. */
	reason: string | null;
	since: Micros;
	/** When the mail server is tried again, as far as a process does that; null for `manual`. */
	retry_at: Micros | null;
	/** Faults in a row; 0 for `manual`. */
	faults: number;
}

/** The queue as a person looks at it. */
export interface QueueState {
	/** All messages by state; absent = 0. */
	messages: Partial<Record<MessageState, number>>;
	/** Waiting ones whose time has come. */
	due: number;
	/** How many of those limits of the settings hold back. */
	held: number;
	/** When the oldest of those not final was accepted or released; null when there are none. */
	oldest_at: Micros | null;
	/** When the next of them is due, or a lease ends; null when there are none. */
	next_due_at: Micros | null;
	/** `manual` first. */
	pauses: readonly QueuePause[];
	/** Processes that send, or could: `messages` are those in their hands. */
	workers: readonly QueueWorker[];
	/** Deferred messages by the domain of the recipient, the most first, at most 50 domains. */
	deferred: readonly DeferredDomain[];
	/** Limits of the settings that hold messages back, the most first, at most 50; one that waits for several counts for each. */
	limits: readonly HoldingLimit[];
}

export interface QueueWorker {
	/** `serve`, `worker`, `cli`; null for one that is gone: its leases run out. */
	role: string | null;
	host: string;
	pid: number;
	messages: number;
	/** When it last said that it is there, which it does every few seconds; null: not in the last 15 seconds. */
	heard_at: Micros | null;
}

export interface DeferredDomain {
	domain: string;
	messages: number;
	/** When the first of them is tried again. */
	next_due_at: Micros;
	/** What the one was told that is tried again last. */
	last_reply: string | null;
}

/** A limit of the settings that holds messages back. */
export interface HoldingLimit extends LimitName {
	messages: number;
	/** When the next of them may go, and when the last of them at the soonest. */
	next_at: Micros;
	last_at: Micros;
}

/** A limit that holds one message back, and until when at least. */
export interface LimitHold extends LimitName {
	until_at: Micros;
}

/** How long whoever came last to a limit of the settings still waits for it, at least; 0: nobody does. */
export interface LimitWait {
	setting: string;
	/** As in `LimitName`. */
	limit: string;
	wait: Micros;
}

/** Names one lease of one message: a settle with an older fence is `lost_lease`. */
export interface Fence {
	message: Uuid;
	fence: number;
}

/** A message as its worker sees it. `variables` holds context over meta over the stored built-ins. */
export interface Leased extends Fence {
	submission: Uuid;
	to: string;
	list_id: number | null;
	variables: Record<string, string>;
	/** Attempts made before this lease. */
	attempts: number;
	/** Addresses whose copies (cc, bcc) may not go any more; absent = all may. */
	stopped_copies?: readonly EmailKey[];
	created_at: Micros;
}

export interface Settlement extends Fence {
	at: Micros;
	outcome: DeliveryOutcome;
}

export type DeliveryOutcome =
	| { kind: 'sent'; reply: Reply }
	| { kind: 'deferred'; reply: Reply; due_at: Micros }
	| { kind: 'uncertain'; reply: Reply }
	| { kind: 'bounced'; reply: Reply; suppress: boolean }
	| { kind: 'failed'; reply: Reply }
	/** `due_at`: not before, so that another message is tried first; absent = as it was. */
	| { kind: 'released'; why: 'infrastructure' | 'drain'; due_at?: Micros };

/** Where a conversation ended; `answer` = after the final dot, waiting for the reply. */
export type SmtpPhase = 'connect' | 'tls' | 'greeting' | 'ehlo' | 'auth' | TransactionPhase;
type TransactionPhase = 'mail' | 'rcpt' | 'data' | 'body' | 'answer';

/** A server's reply, or the local reason why there was none (`code` null). `text` ≤ 500 characters, cleaned of CR and LF. */
export interface Reply {
	phase: SmtpPhase;
	code: number | null;
	enhanced: string | null;
	text: string;
}
