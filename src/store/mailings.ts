/** The commands that open and fill a mailing, and their outcomes: plain data. */
import type { AcceptCounts, Ack, MailingSpec } from '../api/capabilities.js';
import type { Micros } from '../api/datetime.js';
import type { RequestsSpec } from '../api/mailings.js';
import type { Uuid } from '../api/records.js';
import type { Submission } from './submissions.js';

export interface OpenMailing {
	/** The campaign's UUID, used when the key is new. */
	id: Uuid;
	key: string;
	/** As it was given: kept, and compared when the job is opened again. */
	spec: MailingSpec | RequestsSpec;
	/** What the spec comes to: a variable without a value rejects its row. */
	strict_vars: boolean;
	/** `null`: each row brings its own. */
	submission: Omit<Submission, 'recipients' | 'campaign'> | null;
	now: Micros;
}

export type MailingAck =
	| { kind: 'acknowledged'; ack: Ack<AcceptCounts> }
	| { kind: 'gap'; position: number }
	| { kind: 'not_found' }
	/** It takes nobody any more. */
	| { kind: 'closed'; state: 'released' | 'canceled' | 'complete' }
	/** Recipients for a mailing of requests, or the other way round. */
	| { kind: 'other_rows' };

/** One row of a mailing's batch, its shape checked: a recipient, or why it is none. */
export type RecipientRow =
	| {
			kind: 'recipient';
			to: string;
			to_key: string;
			context: Readonly<Record<string, string>>;
			line?: number;
	  }
	| { kind: 'rejected'; code: string; error: string; to?: string; line?: number };

/** One row of a mailing of send requests, its shape checked and its template read: a request, or why it is none. */
export type RequestedRow =
	| {
			kind: 'request';
			/** Named by the mailing and all of the request but `to`: requests that are alike share it. */
			submission: Omit<Submission, 'recipients' | 'campaign'>;
			recipients: readonly { to: string; to_key: string }[];
			line?: number;
	  }
	| Extract<RecipientRow, { kind: 'rejected' }>;
