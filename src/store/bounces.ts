/** The outcome of a bounce report: what it changed, and for which recipient. */
import type { EmailKey } from '../api/address.js';

/**
 * `recorded`: the first of its kind for its message. `known`: it changes nothing, by its content or because the same
 * was reported of the message before. `unmatched`: no such message, or the report names no recipient of the message.
 * `in_flight`: the message is leased; the report may be recorded after its outcome.
 */
export type ReportOutcome =
	| ({ kind: 'recorded' } & RecordedReport)
	| { kind: 'known' }
	| { kind: 'unmatched' }
	| { kind: 'in_flight' };

/** The effect of a report, and its recipient: of several recipients the message's own, else the first. */
export interface RecordedReport {
	effect: ReportEffect;
	address: EmailKey;
}

/** The effect of a report on its recipient. */
export type ReportEffect = 'hard_bounce' | 'soft_bounce' | 'complaint';
