/** What came back, as a store takes it: a report that was read and matched to its message, not yet to a recipient. */
import type { EmailKey } from '../api/address.js';
import type { Micros } from '../api/datetime.js';
import type { Uuid } from '../api/records.js';

/** One mail that says what became of one of our messages. */
export interface ReturnedReport {
	/** Of the mail, hex: the same mail again changes nothing. */
	sha256: string;
	at: Micros;
	message: Uuid;
	/** How the message is known: by its signed return path, or by its Message-ID within the report. */
	matched: 'return_path' | 'message_id';
	kind: 'bounce' | 'complaint';
	/** Whom the report names: those that failed, or those who complain (nobody, where the receiver blanks them out). */
	recipients: readonly ReportedAddress[];
}

/** One recipient as a stranger's report has it. */
export interface ReportedAddress {
	/** The address that failed, and the one we sent to where the report tells it apart; as they are compared. */
	addresses: readonly EmailKey[];
	/** Decision 31: the address is no good. False for a complaint. */
	hard: boolean;
	/** Reply code, else enhanced code; null when the report has neither. */
	smtp_code: string | null;
	/** One line of at most 500 characters; null when nothing is told. */
	diagnostic: string | null;
}

/**
 * `recorded`: the first of its kind for its message. `known`: it changes nothing, by its content or because the same was
 * said of the message before. `unmatched`: no such message, or the report names nobody the message went to.
 * `in_flight`: the message is in a worker's hands; the report may be recorded once its outcome is.
 */
export type ReportOutcome =
	| ({ kind: 'recorded' } & RecordedReport)
	| { kind: 'known' }
	| { kind: 'unmatched' }
	| { kind: 'in_flight' };

/** What a report came to, and for whom: of several recipients the message's own, else the first. */
export interface RecordedReport {
	effect: ReportEffect;
	address: EmailKey;
}

/** What a report came to. */
export type ReportEffect = 'hard_bounce' | 'soft_bounce' | 'complaint';
