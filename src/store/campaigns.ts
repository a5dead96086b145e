import type {
	AcceptCounts,
	AudiencePart,
	Campaign,
	CampaignFilter,
	CampaignResults,
	CampaignSession,
	CampaignSpec,
	CampaignStatus,
	LeftOutPerson,
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
import type { Courier, RecipientRow, RefusedRow } from '../engine/rules/campaign-rows.js';
import type { Means, PageOf, Seen, Slice } from './store.js';

export interface OpenCampaign {
	id: Uuid;
	key: string;
	is_numbered?: boolean;
	spec: CampaignSpec | RequestsSpec;
	strict_vars: boolean;
	/** The default is `smtp`. With `api` a service has the senders, lists and fields, so do not look them up here. */
	courier?: Courier;
	audience?: CheckedAudience;
	timing?: CheckedTiming;
	submission: Omit<Submission, 'recipients' | 'campaign'> | null;
	owner?: string;
	/** The client, if it sees only its own campaigns. Another client's key is a `conflict`; `unless` ignores others. */
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

/** `first` deletes the staged rows, because a list that has changed is read again from its start. */
export interface ListedPeople {
	campaign: Uuid;
	list_id: number;
	part: 'first' | 'next' | 'last';
	people: readonly ListedPerson[];
	now: Micros;
}

export type PeopleAck =
	| { kind: 'acknowledged'; ack: Ack<AcceptCounts>; isWhole: boolean }
	| { kind: 'not_found' }
	| { kind: 'closed'; state: 'released' | 'canceled' | 'complete' }
	| { kind: 'other_rows' };

export type RequestedRow =
	| {
			kind: 'request';
			/** Requests for the same mail share this UUID, so an address in several of them gets one mail. */
			alike: Uuid;
			submission: Omit<Submission, 'recipients' | 'campaign'>;
			recipients: readonly { to: string; to_key: string }[];
			line?: number;
	  }
	| RefusedRow;

export interface CampaignReads {
	campaignStatus(c: { id: Uuid; now: Micros } & Seen): Promise<CampaignStatus | null>;
	foreseeAudience(c: {
		type: 'TRANSACTIONAL' | 'BULK';
		used: string[];
		context: Record<string, string>;
		is_strict: boolean;
		now: Micros;
		audience: CheckedAudience;
		list_id: number;
		after: number;
		limit: number;
		time_zone: string;
	}): Promise<AudiencePart | null>;
	sliceLeftOut(
		c: { id: Uuid; after: number; limit: number } & Seen,
	): Promise<{ results: LeftOutPerson[]; next: number | null } | null>;
	pageCampaigns(
		c: Omit<CampaignFilter, 'since'> & { since_at?: Micros; now: Micros } & PageOf & Seen,
	): Promise<Slice<Campaign>>;
	sliceCampaignResults(
		c: { id: Uuid; after: number; limit: number; only: 'findings' | null } & Seen,
	): Promise<CampaignResults | null>;
}

export interface CampaignWrites {
	openCampaign(c: OpenCampaign): Promise<CampaignOpened>;
	/**
	 * Expands a list's active subscribers into staged messages. Adding the list again adds no address twice. After
	 * `for_ms` no new slice starts; if absent, the call adds the whole list.
	 */
	addListToCampaign(
		c: { campaign: Uuid; list_id: number; now: Micros; for_ms?: number } & Seen,
		means?: Means,
	): Promise<ListAck | null>;
	addPeopleToCampaign(c: ListedPeople): Promise<PeopleAck>;
	/** Makes uncertain messages due. With `isAgain` false, makes messages that wait for a retry uncertain again. */
	retryUncertain(c: { campaign: Uuid; isAgain: boolean; now: Micros }): Promise<void>;
	keepCampaignRate(c: { campaign: Uuid; rate: string }): Promise<void>;
	putCampaignBatch(
		c: {
			campaign: Uuid;
			first: number;
			rows: readonly (RecipientRow | RequestedRow)[];
			now: Micros;
		} & Seen,
	): Promise<CampaignAck>;
	completeCampaign(
		c: { campaign: Uuid; position: number } & Seen,
	): Promise<Exclude<CampaignAck, { kind: 'acknowledged' }> | { kind: 'complete' }>;
	releaseCampaign(
		c: { campaign: Uuid; expect_count: number; now: Micros } & Seen,
	): Promise<
		| { kind: 'released' }
		| { kind: 'count_differs'; count: number }
		| { kind: 'not_found' }
		| { kind: 'canceled' }
		| { kind: 'incomplete' }
	>;
	cancelCampaign(c: { campaign: Uuid; forget?: boolean; now: Micros } & Seen): Promise<CampaignCanceled>;
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
	 * The variables of the content: a message keeps only these from its subscriber's meta. Null if only the service that
	 * sends the messages knows them.
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
