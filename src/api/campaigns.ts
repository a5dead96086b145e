/** The input of a campaign besides recipients, and its results: the plain data of `Campaigns`. */
import type { Call } from './api.js';
import type { AcceptCounts, CampaignSpec, CampaignStatus, Recipient, Session } from './capabilities.js';
import { ApiError } from './errors.js';
import type { MessageState, Uuid, WireDateTime } from './records.js';

/**
 * The spec of a campaign of send requests: only its rows' source. Each request has its own content; `put` then takes no
 * recipients, and `putRequests` nothing else.
 */
export interface RequestsSpec extends Timing {
	requests: true;
	strict_vars?: boolean;
	source?: CampaignSource;
}

export type AnyCampaignSpec = CampaignSpec | RequestsSpec;

/** The session of a campaign. */
export interface CampaignSession extends Session {
	/** The campaign's name. */
	key: string;
}

/**
 * The source of the rows and how they are read, as texts by name: `sha256`, `encoding`, … It contains everything that
 * determines the rows. Only `path` is not compared: a moved file is still the same file, and a pipe has none.
 */
export type CampaignSource = Readonly<Record<string, string>>;

/**
 * The state of a campaign for people: `planned` for a later time, `staged` and not released, `sending` while messages
 * wait for their first or next try, `finished`, `canceled`.
 */
export const campaignStates = ['planned', 'staged', 'sending', 'finished', 'canceled'] as const;
export type CampaignState = (typeof campaignStates)[number];

export function campaignState({
	state,
	is_finished,
	plan,
}: Pick<CampaignStatus, 'state' | 'is_finished' | 'plan'>): CampaignState {
	if (state !== 'released') return state;
	if (plan?.is_planned === true) return 'planned';
	return is_finished ? 'finished' : 'sending';
}

/**
 * True: it is of send calls alone (`send --bulk --to`), and its name is its UUID. It is released as a whole, takes no
 * rows, and is in no list of campaigns: `CampaignFilter` finds it by `id` alone.
 */
export function isOfCalls({ id, key }: Pick<CampaignStatus, 'id' | 'key'>): boolean {
	return id === key;
}

/** All given conditions must hold; absent = any. */
export interface CampaignFilter {
	/** The one of that name. */
	key?: string;
	/** By itself it may be that of send calls: see `isOfCalls`. */
	id?: Uuid;
	state?: CampaignState;
	/** Released, or else opened, at or after, `YYYY-MM-DDTHH:MM:SS.ffffff`. */
	since?: string;
	/** By opening: the newest last (`date_created`, the default) or first. */
	ordering?: 'date_created' | '-date_created';
}

/** Distinct messages of a campaign by event. Opens and clicks by people; `machine_` only by machines. */
export interface CampaignFigures {
	/** Its own once it is released, and those of send calls that joined it. */
	created: number;
	sent: number;
	opened: number;
	machine_opened: number;
	clicked: number;
	machine_clicked: number;
	unsubscribed: number;
	softbounced: number;
	hardbounced: number;
}

/** A campaign in a list, without its bodies. */
export interface Campaign extends Omit<CampaignStatus, 'messages' | 'joined' | 'lists' | 'attachments'> {
	/** Rows put so far. */
	position: number;
	/** All its rows were put: see `Campaigns.complete`. */
	is_complete: boolean;
	type: 'TRANSACTIONAL' | 'BULK';
	/** The subject for its recipients; null for send requests. */
	subject: string | null;
	/** The subject as given. Absent: each request has its own, or the server is older. */
	from?: string;
	list_id: number | null;
	/** Absent: not told, or it has no list. */
	audience?: Audience;
	source: CampaignSource | null;
	/** True: its rows are send requests. */
	requests: boolean;
	date_created: string;
	/** When its messages could leave; null before that. */
	date_released: string | null;
	/** When retention began to delete its messages; absent: they are kept. */
	date_dropped?: string;
	rate?: string;
	/** Null where a service sends its messages and gives no figures on them. */
	figures: CampaignFigures | null;
}

/** The outcome of one recipient of the rows put, or of one refused row. */
export interface CampaignResult {
	line: number | null;
	/** As given; empty where there was none. */
	to: string;
	/** The message; null without one. */
	id: Uuid | null;
	state: MessageState | 'accepted' | 'suppressed' | 'rejected';
	/** Why there is no message, as a reject's code; else null. */
	code: string | null;
	/** The text of a reject, or the last reply of the mail server. */
	text: string | null;
	attempts: number;
}

/** A reply that servers gave to messages in a state; `…` stands for the recipient. */
export interface CommonReply {
	state: MessageState;
	reply: string;
	count: number;
}

/** `next`: pass it as `after` for the rest; null at the end. */
export interface CampaignResults {
	results: readonly CampaignResult[];
	next: number | null;
}

export const maxBatchRows = 10_000;

/** At most 4 MiB; `first` counts rows from 0, so a batch whose answer was lost is put again. */
export interface RecipientBatch {
	first: number;
	recipients: readonly Recipient[];
}

/** One send request of a campaign of requests; checked like a send call. */
export interface RequestRow {
	request: unknown;
	/** Where it is in its source, for people: kept for the results. */
	line?: number;
	/** It is not a valid request (no JSON, too large): `request` is ignored. */
	refused?: { code: string; error: string };
}

/** At most 4 MiB; `first` counts requests from 0, so a batch whose answer was lost is put again. */
export interface RequestBatch {
	first: number;
	requests: readonly RequestRow[];
}

/** Selects results: those after `after` (0 = all), at most `limit` (1,000). */
export interface ResultsRequest {
	after?: number;
	limit?: number;
	only?: 'findings';
}

/**
 * Messages of a campaign by state; absent = 0. `accepted` replaces all later states where a service took the messages
 * and does not report on them, and is 0 there before it takes any.
 */
export type CampaignMessages = Partial<Record<MessageState | 'accepted', number>>;

/** How a campaign is opened. */
export interface CampaignOpening {
	/** A new one is `conflict` beside such a campaign, whose key is the message of the field `sent`. */
	unless?: SameMail;
}

/**
 * Which campaign of the same mail to the same rows (`mailIdentity`). `sent`: it is staged, has messages to send, or was
 * released within 24 hours and reached a recipient. `repeated`: the same, and it repeats one before it. `repeating`: it
 * is staged or has messages to send, and repeats one before it.
 */
export type SameMail = (typeof sameMails)[number];

export const sameMails = ['sent', 'repeated', 'repeating'] as const;

/** How a list is added to a campaign. */
export interface ListAdding {
	/** No further slice of the list begins after so many milliseconds; absent: all of the list in one call. */
	forMs?: number;
}

/** How a campaign is canceled. */
export interface CampaignCanceling {
	/**
	 * A campaign that was never released is deleted completely, instead of being kept as canceled. One that was released is
	 * left as it is: `conflict`.
	 */
	forget?: boolean;
}

/** The refusal of a campaign beside one of the same mail, with that key: see `CampaignOpening`. */
export function repeatedCampaign(key: string): ApiError {
	const fields = { sent: [{ code: 'sent', message: key }] };
	return new ApiError('conflict', `The campaign "${key}" is the same mail to the same recipients.`, {
		fields,
	});
}

/** The key of that campaign; null: another error. */
export function repeatedKey({ code, fields }: ApiError): string | null {
	const told = fields?.['sent'];
	return code === 'conflict' && Array.isArray(told) ? String(told[0]?.message) : null;
}

/** The part of a campaign's spec that says to whom; all of it must hold. */
export interface Audience {
	/** All lists in their order, `list_id` first; absent: `list_id` alone. */
	lists?: readonly number[];
	/** No address that is in one of these, active or not. */
	exclude_lists?: readonly number[];
	/** Conditions on the subscriber, `meta.city=Oslo`. */
	where?: readonly string[];
	/** Campaigns whose mail the address got and a person opened. Machines do not count. */
	where_opened?: readonly Uuid[];
	/** Campaigns whose mail the address got and no person opened. */
	where_not_opened?: readonly Uuid[];
}

/** When a campaign's messages may leave. */
export interface Timing {
	/** Not before; absent: from the release on. */
	starts_at?: WireDateTime;
	/** `HH:MM-HH:MM` of each day in `time_zone`; it may go over midnight. Absent: at any time. */
	window?: string;
	/** IANA name, of the window and of the days in `where`; absent: that of the database. */
	time_zone?: string;
}

/** The reason why a subscriber of a list gets no message. */
export interface LeavingOut {
	/** `inactive`, `excluded`, `condition`, `opened`, `not_opened`, `duplicate`, `suppressed` or `missing_variable`. */
	code: string;
	/** The excluded list's id, the condition, the campaign's UUID, the reason of a suppression, or a text; null: none. */
	detail: string | null;
}

/** Subscribers of one list, by what became of them. */
export interface ListCounts extends AcceptCounts {
	list_id: number;
	/** The reasons, in the order in which they were met; `suppressed` and `rejected` are among them. */
	reasons: readonly (LeavingOut & { count: number })[];
}

/** A subscriber of its lists, or a recipient of a send call with its UUID, that a campaign left out. */
export interface LeftOutPerson extends LeavingOut {
	to: string;
	/** Null: of a call without a list. */
	list_id: number | null;
}

/** A part of what a campaign would be; `next`: pass it as `after` for the rest; null at the end. */
export interface AudiencePart {
	counts: ListCounts;
	/** The first of this part that would get a message. */
	first: number | null;
	/** The first with a missing variable, for people. */
	findings: readonly string[];
	next: number | null;
}

/** The timing of a campaign that has one. */
export interface CampaignPlan {
	/** Null: from its release on. */
	starts_at: WireDateTime | null;
	/** Null: at any time of the day. */
	window: string | null;
	time_zone: string;
	/** Nothing leaves before; null: it may leave now. */
	opens_at: WireDateTime | null;
	/** Released for later, and nothing has left. */
	is_planned: boolean;
}

/** A request for a time, as people give it. */
export interface TimingRequest {
	/** `2026-12-01T09:00`, local without an offset; `tomorrow 09:00`. */
	at?: string;
	/** From now on; milliseconds. */
	in_ms?: number;
	window?: string;
}

/** The moment of a request. */
export interface PlannedTiming extends Timing {
	time_zone: string;
	/** The first moment at which a message may leave, the window considered; null: now. */
	opens_at: WireDateTime | null;
	/** The local time does not exist (`skipped`: the moment after it) or exists twice (`repeated`: the first). */
	note: 'skipped' | 'repeated' | null;
}

/** Foresees audiences and times, and names who was left out. Throws `not_found` and `invalid`. */
export interface Audiences {
	/** What staging one of the lists would come to; writes nothing. */
	foresee(
		spec: CampaignSpec,
		request: { list_id: number; after?: number },
		call?: Call,
	): Promise<AudiencePart>;
	/** `invalid` on `at` for the past and for no time, on `window` for no window. */
	plan(request: TimingRequest, call?: Call): Promise<PlannedTiming>;
	/**
	 * Subscribers that the lists of a campaign have and that got no message, and recipients that send calls with its UUID
	 * left out; at most 1,000 a call.
	 */
	leftOut(
		id: Uuid,
		request: { after?: number; limit?: number },
		call?: Call,
	): Promise<{ results: readonly LeftOutPerson[]; next: number | null }>;
}

/** How a list, by its id, and a campaign, by its UUID, are called. */
export interface LeftOutNames {
	list(id: string): string;
	campaign(id: string): string;
}

/** `in excluded list "Staff"`, `not meta.city=Oslo`, `inactive (UNSUBSCRIBED)`. */
export function sayLeftOut({ code, detail }: LeavingOut, names: LeftOutNames): string {
	switch (code) {
		case 'inactive':
		case 'suppressed':
			return detail === null ? code : `${code} (${detail})`;
		case 'excluded':
			return `in excluded list ${names.list(detail ?? '')}`;
		case 'condition':
			return `not ${detail}`;
		case 'opened':
			return `did not open ${names.campaign(detail ?? '')}`;
		case 'not_opened':
			return `opened ${names.campaign(detail ?? '')}, or did not get it`;
		case 'duplicate':
			return 'in an earlier list';
		case 'missing_variable':
			return detail ?? 'without a value for a variable';
		default:
			return detail ?? code;
	}
}
