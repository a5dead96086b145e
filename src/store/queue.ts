/** Messages on their way to the mail server: leased, delivered outside any transaction, settled. */

import type { MessageScope } from '../api/capabilities.js';
import type { Micros } from '../api/datetime.js';
import type { Uuid } from '../api/records.js';

/** Messages on their way to the mail server. */
export interface Queue {
	/**
	 * Leases up to `max` due messages, fairly over mailings, transactional first. Expired leases return to the queue.
	 * Suppression is checked again: bulk to a suppressed address becomes `canceled` and is not returned.
	 */
	lease(c: {
		/** `host:pid:…`, unique: whoever opens the database to stay gives back leases of processes that are gone. */
		owner: string;
		now: Micros;
		until: Micros;
		max: number;
		scope: MessageScope | null;
	}): Promise<Leased[]>;
	renew(c: { owner: string; fences: readonly Fence[]; until: Micros }): Promise<void>;
	/** State, attempt, figures, suppression, subscriber and events of each message in one operation. */
	settle(c: { settlements: readonly Settlement[] }): Promise<('recorded' | 'lost_lease')[]>;
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
	| { kind: 'released'; why: 'infrastructure' | 'drain' };

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
