import type { Call, PageRequest } from './api.js';
import { AttachedFile } from './attachments.js';
import { type Ack, Reject } from './capabilities.js';
import { ApiError } from './errors.js';
import type { audienceDeclaration, campaignFields, requestsFields, timingDeclaration } from './messages.js';
import {
	type MessageState,
	messageStates,
	messagesByState,
	messageTypes,
	type Page,
	type Uuid,
} from './records.js';
import * as t from './schema/record.js';
import type { Given, GivenOf, Infer } from './schema.js';

export const CampaignSession = t.component('CampaignSession', {
	id: t.needed(t.uuid),
	key: t.needed(t.text),
	position: t.needed(t.count),
});
export type CampaignSession = Infer<typeof CampaignSession>;

/** The file, and the options that determine its rows. Hashes ignore `path`. The hash `mail` also ignores `track`. */
export type CampaignSource = Readonly<Record<string, string>>;

export interface CampaignSpec extends Given<typeof campaignFields> {
	from: string;
}
export type RequestsSpec = Given<typeof requestsFields>;
export type AnyCampaignSpec = CampaignSpec | RequestsSpec;

export type Audience = GivenOf<typeof audienceDeclaration>;
export type Timing = GivenOf<typeof timingDeclaration>;

const AudienceRecord = t.component('Audience', {
	lists: t.listOf(t.id),
	exclude_lists: t.listOf(t.id),
	where: t.listOf(t.text),
	where_opened: t.listOf(t.uuid),
	where_not_opened: t.listOf(t.uuid),
});

const acceptCounts = {
	staged: t.needed(t.count),
	suppressed: t.needed(t.count),
	rejected: t.needed(t.count),
	left_out: t.optional(t.count),
};
export const AcceptCounts = t.component('AcceptCounts', acceptCounts);
export type AcceptCounts = Infer<typeof AcceptCounts>;

const acceptAck = {
	position: t.needed(t.count),
	counts: t.needed(AcceptCounts),
	rejects: t.needed(t.listOf(Reject)),
};
export const AcceptAck = t.component('AcceptAck', acceptAck);

export const ListAck = t.component('ListAck', {
	...acceptAck,
	is_partial: t.optional(
		t.typed<true>(
			t.described(t.flag, {
				description: 'True if the list has more subscribers: call again. Absent at the end of the list.',
			}),
		),
	),
});
export type ListAck = Infer<typeof ListAck>;

/** Absent states count 0. `accepted` counts the messages of a service that does not report their delivery. */
export type CampaignMessages = Partial<Record<MessageState | 'accepted', number>>;

const CommonReply = t.record({ state: t.typed<MessageState>(t.text), reply: t.text, count: t.count });
export type CommonReply = Infer<typeof CommonReply>;

export const CampaignPlan = t.component('CampaignPlan', {
	starts_at: t.orNull(t.moment),
	window: t.orNull(t.text),
	time_zone: t.text,
	opens_at: t.orNull(t.moment),
	is_planned: t.flag,
});
export type CampaignPlan = Infer<typeof CampaignPlan>;

const leavingOut = {
	code: t.needed(t.text),
	detail: t.orNull(t.text),
};
export type LeavingOut = t.RecordOf<typeof leavingOut>;

const ListCounts = t.component('ListCounts', {
	list_id: t.id,
	...acceptCounts,
	reasons: t.needed(t.listOf(t.record({ ...leavingOut, count: t.needed(t.count) }))),
});
export type ListCounts = Infer<typeof ListCounts>;

export const CampaignStatus = t.component('CampaignStatus', {
	id: t.needed(t.uuid),
	key: t.text,
	state: t.needed(t.word(['staged', 'released', 'canceled'])),
	is_finished: t.flag,
	messages: t.needed(t.typed<CampaignMessages>(messagesByState)),
	joined: t.optional(t.typed<CampaignMessages>(messagesByState)),
	/** The five commonest replies for failed, bounced and deferred messages, with `…` instead of the recipient. */
	replies: t.optional(t.listOf(CommonReply)),
	counts: t.needed(AcceptCounts),
	plan: t.optional(CampaignPlan),
	lists: t.optional(t.listOf(ListCounts)),
	attachments: t.optional(t.listOf(AttachedFile)),
});
export type CampaignStatus = Infer<typeof CampaignStatus>;

export const CampaignFigures = t.component('CampaignFigures', {
	created: t.needed(t.count),
	sent: t.needed(t.count),
	opened: t.needed(t.count),
	machine_opened: t.count,
	clicked: t.needed(t.count),
	machine_clicked: t.count,
	unsubscribed: t.count,
	softbounced: t.count,
	hardbounced: t.count,
});
export type CampaignFigures = Infer<typeof CampaignFigures>;

export const Campaign = t.component('Campaign', {
	id: t.needed(t.uuid),
	key: t.needed(t.text),
	state: t.needed(t.word(['staged', 'released', 'canceled'])),
	is_finished: t.needed(t.flag),
	counts: t.needed(AcceptCounts),
	position: t.needed(t.count),
	is_complete: t.flag,
	type: t.word(messageTypes),
	subject: t.orNull(t.text),
	from: t.optional(t.text),
	list_id: t.orNull(t.integer),
	source: t.typed<CampaignSource | null>(t.orNull(t.dictOf(t.text))),
	requests: t.flag,
	date_created: t.moment,
	date_released: t.orNull(t.moment),
	date_dropped: t.optional(t.moment),
	figures: t.orNull(CampaignFigures),
	plan: t.optional(CampaignPlan),
	audience: t.optional(t.typed<Audience>(AudienceRecord)),
	rate: t.optional(t.text),
});
export type Campaign = Infer<typeof Campaign>;

const CampaignResult = t.component('CampaignResult', {
	line: t.orNull(t.integer),
	to: t.needed(t.text),
	id: { ...t.orNull(t.uuid), schema: () => ({ anyOf: [t.uuid.schema(), { type: 'null' }] }) },
	state: t.needed(
		t.typed<MessageState | 'accepted' | 'suppressed' | 'rejected'>(
			t.word([...messageStates, 'suppressed', 'rejected']),
		),
	),
	code: t.orNull(t.text),
	text: t.orNull(t.text),
	attempts: t.count,
});
export type CampaignResult = Infer<typeof CampaignResult>;

export const CampaignResults = t.named('CampaignResults', t.sliceOf(CampaignResult, t.integer));
export type CampaignResults = Infer<typeof CampaignResults>;

const LeftOutPerson = t.record({
	to: t.needed(t.text),
	list_id: t.needed(t.orNull(t.integer)),
	...leavingOut,
});
export type LeftOutPerson = Infer<typeof LeftOutPerson>;

export const LeftOutPeople = t.named('LeftOutPeople', t.sliceOf(LeftOutPerson, t.integer));

export const AudiencePart = t.component('AudiencePart', {
	counts: t.needed(ListCounts),
	first: t.orNull(t.integer),
	findings: t.listOf(t.text),
	next: t.needed(t.orNull(t.integer)),
});
export type AudiencePart = Infer<typeof AudiencePart>;

export const PlannedTiming = t.component('PlannedTiming', {
	starts_at: t.optional(t.moment),
	window: t.optional(t.text),
	time_zone: t.needed(t.text),
	opens_at: t.orNull(t.moment),
	/** `skipped`: clocks skip this local time. `repeated`: clocks show it twice, and its first occurrence counts. */
	note: t.orNull(t.word(['skipped', 'repeated'])),
});
export type PlannedTiming = Infer<typeof PlannedTiming>;

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

/** True if only send calls made the campaign: its name is its UUID, it accepts no rows, and `page` omits it. */
export function isOfCalls({ id, key }: Pick<CampaignStatus, 'id' | 'key'>): boolean {
	return id === key;
}

export interface CampaignFilter {
	key?: string;
	id?: Uuid;
	state?: CampaignState;
	since?: string;
	ordering?: 'date_created' | '-date_created';
}

export interface Recipient {
	to: string;
	context?: Readonly<Record<string, string>>;
	line?: number;
	refused?: { code: string; error: string };
}

export const maxBatchRows = 10_000;

export interface RecipientBatch {
	first: number;
	recipients: readonly Recipient[];
}

export interface RequestRow {
	request: unknown;
	line?: number;
	refused?: { code: string; error: string };
}

export interface RequestBatch {
	first: number;
	requests: readonly RequestRow[];
}

export interface ResultsRequest {
	after?: number;
	limit?: number;
	only?: 'findings';
}

export interface CampaignOpening {
	unless?: SameMail;
}

/**
 * The campaigns that prevent a new one with the same mail and recipients. `sent`: campaigns that are unfinished or were
 * released in the last 24 hours. `repeated`: the campaigns of `sent` that repeat an earlier campaign. `repeating`:
 * unfinished campaigns that repeat an earlier campaign.
 */
export type SameMail = (typeof sameMails)[number];

export const sameMails = ['sent', 'repeated', 'repeating'] as const;

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
	at?: string;
	in_ms?: number;
	window?: string;
}

export interface Audiences {
	foresee(
		spec: CampaignSpec,
		request: { list_id: number; after?: number },
		call?: Call,
	): Promise<AudiencePart>;
	plan(request: TimingRequest, call?: Call): Promise<PlannedTiming>;
	/** Returns at most 1,000 people per call. */
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
			return `opened ${names.campaign(detail ?? '')}, or did not receive it`;
		case 'duplicate':
			return 'already in an earlier list';
		case 'missing_variable':
			return detail ?? 'without a value for a variable';
		default:
			return detail ?? code;
	}
}

export interface Campaigns {
	/** Throws `conflict` if the key has another spec. Without a key, derives the name from subject and day. */
	open(key: string | null, spec: AnyCampaignSpec, call?: Call & CampaignOpening): Promise<CampaignSession>;
	check(key: string | null, spec: AnyCampaignSpec, call?: Call & CampaignOpening): Promise<void>;
	/** Answers a repeated batch (same `first`) with the stored ack. Throws `conflict` after a gap or the release. */
	put(id: string, batch: RecipientBatch, call?: Call): Promise<Ack<AcceptCounts>>;
	/** Like `put`, for requests. A repeated address is a `duplicate` only if both requests are equal except for `to`. */
	putRequests(id: string, batch: RequestBatch, call?: Call): Promise<Ack<AcceptCounts>>;
	/** Marks the rows complete: later runs need no source. Throws `conflict` unless `position` rows were put. */
	complete(id: string, rows: { position: number }, call?: Call): Promise<void>;
	/** Stages active subscribers and returns at most 100 rejects. Another call continues where the last one stopped. */
	addList(id: string, listId: number, call?: Call & { forMs?: number }): Promise<ListAck>;
	/**
	 * Lets workers lease the staged rows. Throws `conflict` if there are not exactly `expect_count` rows. Unlike the
	 * option `--expect-count`, this count excludes suppressed recipients.
	 */
	release(id: string, expected: { expect_count: number }, call?: Call): Promise<void>;
	/** `forget` deletes a campaign, but throws `conflict` if the campaign was released. */
	cancel(id: string, call?: Call & { forget?: boolean }): Promise<void>;
	status(id: string, call?: Call): Promise<CampaignStatus>;
	page(request: CampaignFilter & PageRequest, call?: Call): Promise<Page<Campaign>>;
	results(id: string, request: ResultsRequest, call?: Call): Promise<CampaignResults>;
}
