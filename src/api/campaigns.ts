import type { Call, PageRequest } from './api.js';
import { AttachedFile, type Attachment } from './attachments.js';
import { type Ack, Reject } from './capabilities.js';
import { ApiError } from './errors.js';
import {
	type MessageState,
	messageStates,
	messagesByState,
	messageTypes,
	type Page,
	type Uuid,
	type WireDateTime,
} from './records.js';
import * as t from './schema/record.js';
import type { Infer } from './schema.js';

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

/** The session of a campaign. `key`: the campaign's name. */
export const CampaignSession = t.named(
	'CampaignSession',
	t.record({ id: t.needed(t.uuid), key: t.needed(t.text), position: t.needed(t.count) }),
);
export type CampaignSession = Infer<typeof CampaignSession>;

/**
 * The source of the rows and how they are read, as texts by name: `sha256`, `encoding`, … It contains everything that
 * determines the rows. Only `path` is not compared: a moved file is still the same file, and a pipe has none.
 */
export type CampaignSource = Readonly<Record<string, string>>;

export interface CampaignSpec extends Audience, Timing {
	from: string;
	type: 'TRANSACTIONAL' | 'BULK';
	subject?: string;
	text_body?: string;
	html_body?: string;
	template_unique_id?: Uuid;
	reply_to?: readonly string[];
	headers?: Readonly<Record<string, string>>;
	disable_inline?: boolean;
	disable_tracking?: boolean;
	context?: Readonly<Record<string, string>>;
	tag?: string;
	campaign_unique_id?: Uuid;
	attachments?: readonly Attachment[];
	/** The list of the recipients: the same name with another list is another spec. */
	list_id?: number;
	/** A variable without a value rejects the row (api-decisions 24); the default. */
	strict_vars?: boolean;
	source?: CampaignSource;
}

/** The part of a campaign's spec that says to whom; all of it must hold. */
export interface Audience {
	/** All lists in their order, `list_id` first; absent: `list_id` alone. */
	lists?: readonly number[];
	exclude_lists?: readonly number[];
	where?: readonly string[];
	/** Campaigns whose mail the address got and a person opened. Machines do not count. */
	where_opened?: readonly Uuid[];
	/** Campaigns whose mail the address got and no person opened. */
	where_not_opened?: readonly Uuid[];
}

const AudienceRecord = t.named(
	'Audience',
	t.record({
		lists: t.listOf(t.id),
		exclude_lists: t.listOf(t.id),
		where: t.listOf(t.text),
		where_opened: t.listOf(t.uuid),
		where_not_opened: t.listOf(t.uuid),
	}),
);

export interface Timing {
	/** Not before; absent: from the release on. */
	starts_at?: WireDateTime;
	/** `HH:MM-HH:MM` of each day in `time_zone`; it may go over midnight. Absent: at any time. */
	window?: string;
	/** IANA name, of the window and of the days in `where`; absent: that of the database. */
	time_zone?: string;
}

const acceptCounts = {
	staged: t.needed(t.count),
	suppressed: t.needed(t.count),
	rejected: t.needed(t.count),
	left_out: t.optional(t.count),
};
/** read = staged + suppressed + rejected + left_out. */
export const AcceptCounts = t.named('AcceptCounts', t.record(acceptCounts));
export type AcceptCounts = Infer<typeof AcceptCounts>;

const acceptAck = {
	position: t.needed(t.count),
	counts: t.needed(AcceptCounts),
	rejects: t.needed(t.listOf(Reject)),
};
export const AcceptAck = t.named('AcceptAck', t.record(acceptAck));

/** The answer to a list. Counts are those of this call. */
export const ListAck = t.named(
	'ListAck',
	t.record({
		...acceptAck,
		is_partial: t.optional(
			t.typed<true>(
				t.described(t.flag, {
					description: 'True where the list goes on: call again. Absent: it was read to its end.',
				}),
			),
		),
	}),
);
export type ListAck = Infer<typeof ListAck>;

/**
 * Messages of a campaign by state; absent = 0. `accepted` replaces all later states where a service took the messages
 * and does not report on them, and is 0 there before it takes any.
 */
export type CampaignMessages = Partial<Record<MessageState | 'accepted', number>>;

/** A reply that servers gave to messages in a state; `…` stands for the recipient. */
const CommonReply = t.record({ state: t.typed<MessageState>(t.text), reply: t.text, count: t.count });
export type CommonReply = Infer<typeof CommonReply>;

export const CampaignPlan = t.named(
	'CampaignPlan',
	t.record({
		starts_at: t.orNull(t.moment),
		window: t.orNull(t.text),
		time_zone: t.text,
		/** Nothing leaves before; null: it may leave now. */
		opens_at: t.orNull(t.moment),
		is_planned: t.flag,
	}),
);
export type CampaignPlan = Infer<typeof CampaignPlan>;

const leavingOut = {
	/** `inactive`, `excluded`, `condition`, `opened`, `not_opened`, `duplicate`, `suppressed` or `missing_variable`. */
	code: t.needed(t.text),
	/** The excluded list's id, the condition, the campaign's UUID, the reason of a suppression, or a text; null: none. */
	detail: t.orNull(t.text),
};
export type LeavingOut = t.RecordOf<typeof leavingOut>;

const ListCounts = t.named(
	'ListCounts',
	t.record({
		list_id: t.id,
		...acceptCounts,
		/** The reasons, in the order in which they were met; `suppressed` and `rejected` are among them. */
		reasons: t.needed(t.listOf(t.record({ ...leavingOut, count: t.needed(t.count) }))),
	}),
);
export type ListCounts = Infer<typeof ListCounts>;

export const CampaignStatus = t.named(
	'CampaignStatus',
	t.record({
		id: t.needed(t.uuid),
		key: t.text,
		state: t.needed(t.word(['staged', 'released', 'canceled'])),
		/** Released, and no message waits for a try, or for a decision where a service may have received it. */
		is_finished: t.flag,
		messages: t.needed(t.typed<CampaignMessages>(messagesByState)),
		/** Messages of send calls that joined it by its UUID; absent: none. They do not wait for it, nor it for them. */
		joined: t.optional(t.typed<CampaignMessages>(messagesByState)),
		/** The five commonest replies for messages that failed, bounced or are deferred; absent: none. */
		replies: t.optional(t.listOf(CommonReply)),
		counts: t.needed(AcceptCounts),
		plan: t.optional(CampaignPlan),
		lists: t.optional(t.listOf(ListCounts)),
		/** What its mails have with them; absent: nothing, or each request has its own. */
		attachments: t.optional(t.listOf(AttachedFile)),
	}),
);
export type CampaignStatus = Infer<typeof CampaignStatus>;

/** Distinct messages of a campaign by event. Opens and clicks by people; `machine_` only by machines. */
export const CampaignFigures = t.named(
	'CampaignFigures',
	t.record({
		/** Its own once it is released, and those of send calls that joined it. */
		created: t.needed(t.count),
		sent: t.needed(t.count),
		opened: t.needed(t.count),
		machine_opened: t.count,
		clicked: t.needed(t.count),
		machine_clicked: t.count,
		unsubscribed: t.count,
		softbounced: t.count,
		hardbounced: t.count,
	}),
);
export type CampaignFigures = Infer<typeof CampaignFigures>;

export const Campaign = t.named(
	'Campaign',
	t.record({
		id: t.needed(t.uuid),
		key: t.needed(t.text),
		state: t.needed(t.word(['staged', 'released', 'canceled'])),
		is_finished: t.needed(t.flag),
		counts: t.needed(AcceptCounts),
		position: t.needed(t.count),
		/** All its rows were put: see `Campaigns.complete`. */
		is_complete: t.flag,
		type: t.word(messageTypes),
		subject: t.orNull(t.text),
		/** The sender as given. Absent: each request has its own, or the server is older. */
		from: t.optional(t.text),
		list_id: t.orNull(t.integer),
		source: t.typed<CampaignSource | null>(t.orNull(t.dictOf(t.text))),
		requests: t.flag,
		date_created: t.moment,
		/** When its messages could leave; null before that. */
		date_released: t.orNull(t.moment),
		/** When retention began to delete its messages; absent: they are kept. */
		date_dropped: t.optional(t.moment),
		/** Null where a service sends its messages and gives no figures on them. */
		figures: t.orNull(CampaignFigures),
		plan: t.optional(CampaignPlan),
		audience: t.optional(t.typed<Audience>(AudienceRecord)),
		rate: t.optional(t.text),
	}),
);
export type Campaign = Infer<typeof Campaign>;

/** The outcome of one recipient of the rows put, or of one refused row. */
const CampaignResult = t.named(
	'CampaignResult',
	t.record({
		line: t.orNull(t.integer),
		to: t.needed(t.text),
		id: { ...t.orNull(t.uuid), schema: () => ({ anyOf: [t.uuid.schema(), { type: 'null' }] }) },
		state: t.needed(
			t.typed<MessageState | 'accepted' | 'suppressed' | 'rejected'>(
				t.word([...messageStates, 'suppressed', 'rejected']),
			),
		),
		/** Why there is no message, as a reject's code; else null. */
		code: t.orNull(t.text),
		/** The text of a reject, or the last reply of the mail server. */
		text: t.orNull(t.text),
		attempts: t.count,
	}),
);
export type CampaignResult = Infer<typeof CampaignResult>;

/** `next`: pass it as `after` for the rest; null at the end. */
export const CampaignResults = t.named('CampaignResults', t.sliceOf(CampaignResult, t.integer));
export type CampaignResults = Infer<typeof CampaignResults>;

/** A subscriber of its lists, or a recipient of a send call with its UUID, that a campaign left out. */
const LeftOutPerson = t.record({
	to: t.needed(t.text),
	list_id: t.needed(t.orNull(t.integer)),
	...leavingOut,
});
export type LeftOutPerson = Infer<typeof LeftOutPerson>;

export const LeftOutPeople = t.named('LeftOutPeople', t.sliceOf(LeftOutPerson, t.integer));

/** A part of what a campaign would be; `next`: pass it as `after` for the rest; null at the end. */
export const AudiencePart = t.named(
	'AudiencePart',
	t.record({
		counts: t.needed(ListCounts),
		/** The first of this part that would get a message. */
		first: t.orNull(t.integer),
		/** The first with a missing variable, for people. */
		findings: t.listOf(t.text),
		next: t.needed(t.orNull(t.integer)),
	}),
);
export type AudiencePart = Infer<typeof AudiencePart>;

export const PlannedTiming = t.named(
	'PlannedTiming',
	t.record({
		starts_at: t.optional(t.moment),
		window: t.optional(t.text),
		time_zone: t.needed(t.text),
		/** The first moment at which a message may leave, the window considered; null: now. */
		opens_at: t.orNull(t.moment),
		/** The local time does not exist (`skipped`: the moment after it) or exists twice (`repeated`: the first). */
		note: t.orNull(t.word(['skipped', 'repeated'])),
	}),
);
export type PlannedTiming = Infer<typeof PlannedTiming>;

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

export interface CampaignFilter {
	key?: string;
	/** By itself it may be that of send calls: see `isOfCalls`. */
	id?: Uuid;
	state?: CampaignState;
	since?: string;
	/** By opening: the newest last (`date_created`, the default) or first. */
	ordering?: 'date_created' | '-date_created';
}

/** One recipient of a campaign; `context` replaces the campaign's own values, and those replace the subscriber's meta. */
export interface Recipient {
	to: string;
	context?: Readonly<Record<string, string>>;
	line?: number;
	/** The source's row is not valid: it counts as rejected and is kept with this error. */
	refused?: { code: string; error: string };
}

export const maxBatchRows = 10_000;

/** At most 4 MiB; `first` counts rows from 0, so a batch whose answer was lost is put again. */
export interface RecipientBatch {
	first: number;
	recipients: readonly Recipient[];
}

export interface RequestRow {
	request: unknown;
	line?: number;
	/** It is not a valid request (no JSON, too large): `request` is ignored. */
	refused?: { code: string; error: string };
}

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

interface ListAdding {
	/** No further slice of the list begins after so many milliseconds; absent: all of the list in one call. */
	forMs?: number;
}

interface CampaignCanceling {
	/**
	 * A campaign that was never released is deleted completely, instead of being kept as canceled. One that was released is
	 * left as it is: `conflict`.
	 */
	forget?: boolean;
}

export function repeatedCampaign(key: string): ApiError {
	const fields = { sent: [{ code: 'sent', message: key }] };
	return new ApiError('conflict', `The campaign "${key}" is the same mail to the same recipients.`, {
		fields,
	});
}

export function repeatedKey({ code, fields }: ApiError): string | null {
	const told = fields?.['sent'];
	return code === 'conflict' && Array.isArray(told) ? String(told[0]?.message) : null;
}

export interface TimingRequest {
	/** `2026-12-01T09:00`, local without an offset; `tomorrow 09:00`. */
	at?: string;
	in_ms?: number;
	window?: string;
}

/** Foresees audiences and times, and names who was left out. Throws `not_found` and `invalid`. */
export interface Audiences {
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
	): Promise<Infer<typeof LeftOutPeople>>;
}

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

/** Campaigns: staged, then released in one step. Throws `not_found`, `conflict`, `invalid`. */
export interface Campaigns {
	/**
	 * `key` is the campaign's name, unique for ever; the same key with another spec is `conflict`. Null: a new campaign,
	 * named after its subject and the day, with a number where that name is taken. Only a campaign that was canceled
	 * before its release gives its name back (the engine then lists it under another). The position counts rows that were
	 * put: subscribers added from lists are numbered apart, so that a file continues at its position.
	 */
	open(key: string | null, spec: AnyCampaignSpec, call?: Call & CampaignOpening): Promise<CampaignSession>;
	check(key: string | null, spec: AnyCampaignSpec, call?: Call & CampaignOpening): Promise<void>;
	/**
	 * The same `first` again: the stored ack again. A gap is `conflict`, and so is any batch after the release. Counts
	 * are those of this batch. A recipient of the wrong shape refuses the whole batch (`invalid`), a bad value rejects
	 * its row: `blank`, `invalid`, `duplicate`, `missing_variable`, `null_characters_not_allowed`, …
	 */
	put(id: string, batch: RecipientBatch, call?: Call): Promise<Ack<AcceptCounts>>;
	/**
	 * As `put`, for a campaign of requests. A row that a send call would refuse is rejected; counts are those of
	 * recipients, a rejected request being one. The same address twice in requests that differ only in `to` is
	 * `duplicate`.
	 */
	putRequests(id: string, batch: RequestBatch, call?: Call): Promise<Ack<AcceptCounts>>;
	/** No further row comes: recorded, so that a later run needs no source. `conflict`: other rows were put. */
	complete(id: string, rows: { position: number }, call?: Call): Promise<void>;
	/**
	 * Stages every active subscriber of the list, besides rows. A repeated call continues after the last subscriber that
	 * was read. Lists at most 100 rejects; a repeated call also lists those of the earlier call, until the release.
	 */
	addList(id: string, listId: number, call?: Call & ListAdding): Promise<ListAck>;
	/** All staged rows may be leased at once; `conflict` when the count differs. */
	release(id: string, expected: { expect_count: number }, call?: Call): Promise<void>;
	/** Drops a staged campaign; cancels the unsent messages of a released one. */
	cancel(id: string, call?: Call & CampaignCanceling): Promise<void>;
	status(id: string, call?: Call): Promise<CampaignStatus>;
	page(request: CampaignFilter & PageRequest, call?: Call): Promise<Page<Campaign>>;
	/**
	 * The outcomes of the rows put, in their order, at most 1,000 a call, without recipients from lists. `findings`: only
	 * rejected ones.
	 */
	results(id: string, request: ResultsRequest, call?: Call): Promise<CampaignResults>;
}
