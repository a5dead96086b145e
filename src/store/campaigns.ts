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
import type { CheckedAudience, CheckedTiming } from '../api/messages.js';
import type { Uuid } from '../api/records.js';
import type { Courier, RecipientRow, RefusedRow } from '../engine/rules/campaign-rows.js';
import type { Means, PageOf, Seen, Slice } from './store.js';
import type { Submission } from './submissions.js';

export interface OpenCampaign {
	id: Uuid;
	key: string;
	/** A new campaign in any case: where the name is taken, a number is added. */
	is_numbered?: boolean;
	/** The spec as it was given: stored, and compared when the job is opened again. */
	spec: CampaignSpec | RequestsSpec;
	/** From the spec: a variable without a value rejects its row. */
	strict_vars: boolean;
	/**
	 * The courier of its messages. Senders, lists and fields of a service (`api`) are not in this database, so they are not
	 * looked up. Absent: `smtp`.
	 */
	courier?: Courier;
	/** To whom of its lists it goes; absent: every active subscriber. */
	audience?: CheckedAudience;
	/** When it may leave, also of a campaign that is reopened before its release; absent: from then on. */
	timing?: CheckedTiming;
	/** `null`: each row has its own. */
	submission: Omit<Submission, 'recipients' | 'campaign'> | null;
	/** The new owner; absent: the database owner. */
	owner?: string;
	/**
	 * Another client's campaign with this key is a conflict, also with the same spec. `unless` ignores campaigns of other
	 * clients.
	 */
	only_of?: string;
	/** Opens nothing new beside a campaign of the same mail. */
	unless?: SameMail;
	/** Answers as it would, and changes nothing. */
	is_trial?: boolean;
	now: Micros;
}

export type CampaignOpened =
	| { kind: 'opened'; session: CampaignSession }
	/** The key stands for another spec. */
	| { kind: 'conflict' }
	| { kind: 'repeated'; key: string }
	| { kind: 'refused'; errors: FieldErrors };

export type CampaignAck =
	| { kind: 'acknowledged'; ack: Ack<AcceptCounts> }
	| { kind: 'gap'; position: number }
	| { kind: 'not_found' }
	| { kind: 'closed'; state: 'released' | 'canceled' | 'complete' }
	| { kind: 'other_rows' };

export interface ListedPerson {
	email: string;
	/** The form for comparison; null: not a valid address. */
	to_key: string | null;
	name: string;
	email_reason: string;
	meta: Readonly<Record<string, unknown>>;
}

/**
 * A page of such a list. `first`: deletes what was staged, since a list that changes is read from its beginning again.
 * `last`: the list was read to its end.
 */
export interface ListedPeople {
	campaign: Uuid;
	list_id: number;
	part: 'first' | 'next' | 'last';
	people: readonly ListedPerson[];
	now: Micros;
}

export type PeopleAck =
	/** Counts of the list as far as it was read. `isWhole`: it was read to its end, and nothing changes any more. */
	| { kind: 'acknowledged'; ack: Ack<AcceptCounts>; isWhole: boolean }
	| { kind: 'not_found' }
	| { kind: 'closed'; state: 'released' | 'canceled' | 'complete' }
	| { kind: 'other_rows' };

export type RequestedRow =
	| {
			kind: 'request';
			/** The same for requests of the campaign that readers see alike: of these an address gets one message. */
			alike: Uuid;
			/** For SMTP the same for requests that differ in `to` alone; for an API each has its own, as it was given. */
			submission: Omit<Submission, 'recipients' | 'campaign'>;
			recipients: readonly { to: string; to_key: string }[];
			line?: number;
	  }
	| RefusedRow;

export interface CampaignReads {
	campaignStatus(c: { id: Uuid; now: Micros } & Seen): Promise<CampaignStatus | null>;
	/** What staging the next people of one list would come to; `null`: no such list. */
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
	 * Expands a list's active subscribers into staged messages. Adding the same list again adds no address twice. `for_ms`:
	 * no slice begins later than that; absent: the whole list.
	 */
	addListToCampaign(
		c: { campaign: Uuid; list_id: number; now: Micros; for_ms?: number } & Seen,
		means?: Means,
	): Promise<ListAck | null>;
	/** Adds a list of a service, page by page, to a campaign that goes by its API. */
	addPeopleToCampaign(c: ListedPeople): Promise<PeopleAck>;
	/** `isAgain`: uncertain messages wait for one more send; otherwise those that wait for it are uncertain again. */
	retryUncertain(c: { campaign: Uuid; isAgain: boolean; now: Micros }): Promise<void>;
	/** The rate of a command that sends it, `20/s`, for a later one that goes on. */
	keepCampaignRate(c: { campaign: Uuid; rate: string }): Promise<void>;
	/** The same `first` again gets the stored ack. Rules that need stored state are checked here, row by row. */
	putCampaignBatch(
		c: {
			campaign: Uuid;
			first: number;
			rows: readonly (RecipientRow | RequestedRow)[];
			now: Micros;
		} & Seen,
	): Promise<CampaignAck>;
	/** The campaign takes no further row. `gap`: the number of rows put. */
	completeCampaign(
		c: { campaign: Uuid; position: number } & Seen,
	): Promise<Exclude<CampaignAck, { kind: 'acknowledged' }> | { kind: 'complete' }>;
	/** Changes one row, and deletes the stored acks. `count_differs` releases nothing. */
	releaseCampaign(
		c: { campaign: Uuid; expect_count: number; now: Micros } & Seen,
	): Promise<
		| { kind: 'released' }
		| { kind: 'count_differs'; count: number }
		| { kind: 'not_found' }
		| { kind: 'canceled' }
		| { kind: 'incomplete' }
	>;
	/** `forget`: one that was never released is deleted, and one that was, `released`, stays as it is. */
	cancelCampaign(c: { campaign: Uuid; forget?: boolean; now: Micros } & Seen): Promise<CampaignCanceled>;
}

export type CampaignCanceled = { kind: 'canceled' } | { kind: 'released' } | { kind: 'not_found' };
