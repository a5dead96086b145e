/**
 * Where a mailing is kept and who sends it, so that `send` need not know: the engine and servers of ours keep it
 * themselves, for other deployments a ledger file of this machine plays that part.
 */
import type { AcceptCounts, Mailings } from '../api/capabilities.js';
import type { DeliveryCounts } from '../api/delivery-counts.js';
import type { Uuid } from '../api/records.js';

/** One place that keeps mailings. */
export interface MailingPlace {
	/** Opened by the job's name; rows are staged, then released in one stroke. */
	mailings: Mailings;
	/**
	 * Sends what was released, or waits until a server has. `null`: nobody waits for it here, or nobody tells. Throws
	 * `CliError`, and what was sent before stays sent; called again it goes on with what is left.
	 */
	deliver(id: Uuid, how: MailingDelivery): Promise<MailingOutcome | null>;
}

/** How to deliver; what is absent is as the place does it by itself. */
export interface MailingDelivery {
	/** What it is called, for what is said about it. */
	job: string;
	/** Messages staged: what progress is measured against. */
	total: number;
	/** Ends it after what is in flight. */
	signal: AbortSignal;
	/** Messages a second at most. */
	rate?: number;
	/** Connections, or requests at a time. */
	connections?: number;
	/** Without any outcome for so long, it gives up; milliseconds. */
	stallMs: number;
	/** False: nobody waits where somebody else sends. */
	waits: boolean;
	/** Only where an unanswered call cannot be told from a lost one: those go out again too. */
	retriesUnknown?: boolean;
}

/** What a delivery came to. The exit code follows from it. */
export interface MailingOutcome {
	kind: 'settled' | 'stopped' | 'paused' | 'stalled';
	/** Why, when it is paused. */
	reason: string | null;
	counts: DeliveryCounts;
	warnings: readonly string[];
}

/** A mailing whose rows are all there: what was found, and how many of it have a message. */
export interface Staged {
	counts: AcceptCounts;
	/** staged + suppressed + rejected. */
	found: number;
}
