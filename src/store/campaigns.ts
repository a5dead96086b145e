import type {
	AcceptCounts,
	CampaignSession,
	CampaignSpec,
	ListAck,
	RequestsSpec,
	SameMail,
} from '../api/campaigns.js';
import type { Ack } from '../api/capabilities.js';
import type { Micros } from '../api/datetime.js';
import type { FieldErrors } from '../api/errors.js';
import type { SendRequest } from '../api/inputs.js';
import type { CheckedAudience, CheckedTiming, Content, Envelope } from '../api/messages.js';
import type { SendResult, Tracking, Uuid } from '../api/records.js';
import type { Courier, RefusedRow } from '../engine/rules/campaign-rows.js';

export interface OpenCampaign {
	id: Uuid;
	key: string;
	is_numbered?: boolean;
	spec: CampaignSpec | RequestsSpec;
	strict_vars: boolean;
	/** The default is `smtp`. With `api`, the sending service checks senders, lists and fields; the store does not. */
	courier?: Courier;
	audience?: CheckedAudience;
	timing?: CheckedTiming;
	submission: Omit<Submission, 'recipients' | 'campaign'> | null;
	owner?: string;
	/** If set, `unless` compares only with this client's campaigns. Another client's `key` gives `conflict`. */
	only_of?: string;
	unless?: SameMail;
	is_trial?: boolean;
	now: Micros;
}

export type CampaignOpened =
	| { kind: 'opened'; session: CampaignSession }
	| { kind: 'conflict' }
	| { kind: 'repeated'; key: string }
	| { kind: 'refused'; errors: FieldErrors };

export type CampaignAck =
	| { kind: 'acknowledged'; ack: Ack<AcceptCounts> }
	| { kind: 'gap'; position: number }
	| { kind: 'not_found' }
	| { kind: 'closed'; state: 'released' | 'canceled' | 'complete' }
	| { kind: 'other_rows' };

interface ListedPerson {
	email: string;
	to_key: string | null;
	name: string;
	email_reason: string;
	meta: Readonly<Record<string, unknown>>;
}

/** Subscribers of another service's list. The list may have changed, so `first` deletes rows of earlier runs. */
export interface ListedPeople {
	campaign: Uuid;
	list_id: number;
	part: 'first' | 'next' | 'last';
	people: readonly ListedPerson[];
	now: Micros;
}

export type PeopleAck =
	| { kind: 'acknowledged'; ack: Ack<AcceptCounts>; isWhole: boolean }
	| Exclude<CampaignAck, { kind: 'acknowledged' | 'gap' }>;

export type RequestedRow =
	| {
			kind: 'request';
			/** Requests that send the same mail share this UUID, so an address in several of them gets one mail. */
			alike: Uuid;
			submission: Omit<Submission, 'recipients' | 'campaign'>;
			recipients: readonly { to: string; to_key: string }[];
			line?: number;
	  }
	| RefusedRow;

export interface StagedSlice {
	position: number;
	counts: AcceptCounts;
	rejects: ListAck['rejects'];
	isDone: boolean;
}

export type CampaignCanceled = { kind: 'canceled' } | { kind: 'released' } | { kind: 'not_found' };

export interface IdempotencyKey {
	scope: string;
	key: string;
	fingerprint: string;
}

export interface Submission {
	id: Uuid;
	owner?: string;
	type: 'TRANSACTIONAL' | 'BULK';
	envelope: Envelope;
	from_key: string;
	tag: string | null;
	tracking?: Tracking;
	content: Content;
	content_sha256: string;
	/**
	 * Variables that the content uses; a message stores only these values of its subscriber's meta. Null: only the
	 * sending service knows the variables.
	 */
	variables: readonly string[] | null;
	request?: Omit<SendRequest, 'to'>;
	context: Readonly<Record<string, string>>;
	list_id: number | null;
	campaign: Uuid | null;
	recipients: readonly { id: Uuid; to: string; to_key: string }[];
	now: Micros;
}

export type Acceptance =
	| { kind: 'accepted' | 'replayed'; answer: SendResult; submission: Uuid; campaign: Uuid | null }
	| { kind: 'key_conflict' }
	| { kind: 'refused'; errors: FieldErrors };

export interface StoredSubmission {
	id: Uuid;
	type: 'TRANSACTIONAL' | 'BULK';
	envelope: Envelope;
	tag: string | null;
	campaign: Uuid | null;
	tracking?: Tracking;
	content: Content;
	content_sha256: string;
	/** Retention has deleted the texts and files of the content, except the links of its HTML. */
	is_dropped?: true;
	call?: StoredCall;
}

export interface StoredCall {
	request: Omit<SendRequest, 'to'>;
	content: 'shared' | 'own';
}

export interface OldMessage {
	submission: Uuid;
	list_id: number | null;
	to: string;
	from: string;
	variables: Record<string, string>;
}
