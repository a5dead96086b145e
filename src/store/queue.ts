/** Messages on their way to a mail server or a send API: leased, delivered outside any transaction, settled. */

import type { EmailKey } from '../api/address.js';
import type { CommonReply } from '../api/campaigns.js';
import type { MessageScope } from '../api/capabilities.js';
import type { Micros } from '../api/datetime.js';
import type { LimitName, MessageState, Uuid } from '../api/records.js';
import type { DeliveryOutcome } from '../engine/rules/outcomes.js';

export interface Queue {
	/**
	 * Leases up to `max` due messages, fairly over campaigns, transactional first. Expired leases return to the queue.
	 * Suppression is checked again: bulk to a suppressed address becomes `canceled` and is not returned. A message held
	 * back by a limit of the settings stays queued, costs no attempt and lets others pass (`Reads.nextTurn`).
	 */
	lease(c: {
		/** See `leaseOwner`; unique. Other processes of the machine end its leases once its process is gone. */
		owner: string;
		now: Micros;
		until: Micros;
		max: number;
		scope: MessageScope | null;
		/** The most messages a second, together with other workers that ask for a rate; absent: no rate of its own. */
		perSecond?: number;
		/** No other process works on the scope: leases of other owners there are lost, however long they last. */
		alone?: true;
	}): Promise<Leased[]>;
	renew(c: { owner: string; fences: readonly Fence[]; now: Micros; until: Micros }): Promise<void>;
	/**
	 * Marks messages before a call that cannot be taken back, and unmarks them once it certainly did nothing. A lease that
	 * is lost while a call is under way makes the message `uncertain`: it does not return to the queue. No effect on a
	 * lost lease. `gathers`: the write may wait for others to share its commit, for about as long as a commit takes.
	 */
	setCalling(c: { fences: readonly Fence[]; isCalling: boolean; gathers?: boolean }): Promise<void>;
	settle(c: {
		settlements: readonly Settlement[];
		gathers?: boolean;
	}): Promise<('recorded' | 'lost_lease')[]>;
	/**
	 * Marks a message before its composition, which may end the process; one at a time. A lease that is lost between this
	 * and `endComposing` is a death on the message. After each the message waits a minute, at the third `lease`
	 * makes it `failed`. No effect on a lost lease.
	 */
	beginComposing(fence: Fence): Promise<void>;
	/** Composition ended, with or without a result, and the process lives: forgets earlier deaths on the message. */
	endComposing(fence: Fence): Promise<void>;
	/**
	 * A `manual` pause: nothing is leased until it is resumed. A `fault` makes other workers wait for its `retry_at`; a
	 * worker that leases nevertheless finds out sooner that it is over. A repeated pause of the same kind keeps its
	 * `since`.
	 */
	pause(c: {
		kind: QueuePause['kind'];
		reason: string | null;
		retry_at: Micros | null;
		now: Micros;
	}): Promise<QueuePause>;
	/**
	 * False: there was no pause of these kinds; refusals are not one. `retry_at`: messages that are deferred because their
	 * sender was refused are due then.
	 */
	resume(c: { kinds: readonly QueuePause['kind'][]; retry_at?: Micros }): Promise<boolean>;
}

/** Why nothing new begins, for every process that works on the queue. */
export interface QueuePause {
	/**
	 * `manual`: by a person. `fault`: login, TLS, connection, or a mail server that refuses all mail. `refusal` holds
	 * nothing up: it counts refusals of the sender since the last message that was sent.
	 */
	kind: 'manual' | 'fault' | 'refusal';
	/** A person's reason, which may be missing; for a fault, where it occurred and the reply. */
	reason: string | null;
	since: Micros;
	/** When a running process tries the mail server again; null for `manual`. */
	retry_at: Micros | null;
	/** Faults or refusals in a row; 0 for `manual`. */
	faults: number;
}

export interface QueueState {
	/** All messages by state; absent = 0. */
	messages: Partial<Record<MessageState, number>>;
	due: number;
	/** How many due messages wait for the limit on everything; those of other limits are not due. */
	held: number;
	/** When the oldest message that is not final was accepted or released; null when there is none. */
	oldest_at: Micros | null;
	/** When the next message is due, or a lease ends; null when there is none. */
	next_due_at: Micros | null;
	/** `manual` first, without `refusal`. */
	pauses: readonly QueuePause[];
	/** Processes that send or could; `messages` counts their leases. */
	workers: readonly QueueWorker[];
	/** Deferred messages by the domain of the recipient, the most first, at most 50 domains; refusals of the sender are none. */
	deferred: readonly DeferredDomain[];
	/** The commonest replies to messages of seven days that failed, bounced or are deferred; at most five. */
	replies: readonly CommonReply[];
	/** Limits of the settings that hold messages back, the most first, at most 50; one that waits for several counts for each. */
	limits: readonly HoldingLimit[];
	/** Messages on which a worker ended, the latest first, at most 50; failed ones of seven days. */
	unfinished: readonly UnfinishedMessage[];
}

export interface UnfinishedMessage {
	message: Uuid;
	/** `failed` after the third death. */
	state: MessageState;
	deaths: number;
	/** When it is tried again; null when it has failed. */
	due_at: Micros | null;
}

export interface QueueWorker {
	/** `serve`, `worker`, or `send` for a command; null for a process that is gone: its leases expire. */
	role: string | null;
	host: string;
	pid: number;
	messages: number;
	/** The last heartbeat, which comes every few seconds; null: none in the last 15 seconds. */
	heard_at: Micros | null;
}

export interface DeferredDomain {
	domain: string;
	messages: number;
	/** When the first of them is tried again. */
	next_due_at: Micros;
	/** The last reply for the message that is tried again last. */
	last_reply: string | null;
}

export interface HoldingLimit extends LimitName {
	messages: number;
	/** When the next of them may go, and the earliest time for the last of them. */
	next_at: Micros;
	last_at: Micros;
}

export interface LimitHold extends LimitName {
	until_at: Micros;
}

/** The minimum wait for the message that came last to a limit of the settings; 0: no message waits. */
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
	/** Addresses whose copies (cc, bcc) may not be sent any more; absent = all may. */
	stopped_copies?: readonly EmailKey[];
	/** Neighbours with the same text may go in one call of a send API; absent = it goes by itself. */
	call?: string;
	/** A worker ended while it had the message leased, perhaps because of it; absent = no sign of harm. */
	is_suspect?: true;
	/** It may not begin at this moment or later, as its campaign's window ends; absent = it may. */
	leave_by?: Micros;
	/** From when tries are counted; the date of the mail. */
	created_at: Micros;
}

export interface Settlement extends Fence {
	at: Micros;
	outcome: DeliveryOutcome;
}
