/**
 * Our extensions of the service document. A deployment that lacks an extension has no value under its name, so that
 * calling it by mistake is a type error.
 */
import type { Api, Call, PageRequest } from './api.js';
import type { AttachedFile, Attachment, Attachments } from './attachments.js';
import type {
	AnyCampaignSpec,
	Audience,
	Audiences,
	Campaign,
	CampaignCanceling,
	CampaignFilter,
	CampaignMessages,
	CampaignOpening,
	CampaignPlan,
	CampaignResults,
	CampaignSession,
	CampaignSource,
	CommonReply,
	ListAdding,
	ListCounts,
	RecipientBatch,
	RequestBatch,
	ResultsRequest,
	Timing,
} from './campaigns.js';
import type { Deliveries } from './deliveries.js';
import type { Exports, Tuples } from './exports.js';
import type { FieldsPlus } from './fields.js';
import type { TemplateInput } from './inputs.js';
import type { ListsPlus } from './lists.js';
import type { Erasures, People } from './people.js';
import type {
	DeletedMessages,
	KeySlice,
	Message,
	MessageDetail,
	MessageState,
	Page,
	SendingProgress,
	Template,
	Uuid,
} from './records.js';
import type { ReportsPlus } from './reports.js';
import type { CheckedBatch } from './row-texts.js';
import type { SubscribersPlus } from './subscribers.js';
import type { Suppressions } from './suppressions.js';

/** The abilities of a deployment beyond the service document; determined once, from an answer alone. */
export interface Capabilities {
	readonly service: 'mailctl' | 'unknown';
	/** False: an unanswered `send` is never repeated by the client. */
	readonly idempotentSend: boolean;
	/** Present = callable. */
	readonly ext: Readonly<Partial<Extensions>>;
}

/** Every extension, by the name under which a deployment announces it. */
export interface Extensions {
	lists: ListsPlus;
	imports: Imports;
	campaigns: Campaigns;
	messages: Messages;
	templates: Templates;
	reports: ReportsPlus;
	subscribers: SubscribersPlus;
	fields: FieldsPlus;
	erasures: Erasures;
	exports: Exports;
	tuples: Tuples;
	deliveries: Deliveries;
	suppressions: Suppressions;
	people: People;
	audiences: Audiences;
	attachments: Attachments;
}

/** A command needs an extension that this deployment lacks. */
export class MissingExtension extends Error {
	override readonly name = 'MissingExtension';
	readonly extension: keyof Extensions;
	/** The user's request: `--tag`, `mailctl templates list`; null: not known yet. */
	readonly wanted: string | null;
	constructor(extension: keyof Extensions, wanted: string | null = null) {
		const what = wanted ?? `the extension "${extension}"`;
		super(`${what} is not for this deployment: only mailctl's own engine and server can do that`);
		this.extension = extension;
		this.wanted = wanted;
	}
}

/** A command needs `/senders/`, which this deployment answers with 404. */
export class NoSenders extends Error {
	override readonly name = 'NoSenders';
	constructor() {
		super('this deployment tells no senders');
	}
}

/** The extension, or `MissingExtension` (exit 2) before anything is written. `wanted`: the option that needs it. */
export async function need<K extends keyof Extensions>(
	api: Api,
	name: K,
	wanted: string | null = null,
): Promise<Extensions[K]> {
	const extension = (await api.capabilities()).ext[name];
	if (extension === undefined) throw new MissingExtension(name, wanted);
	return extension;
}

/** Message templates. Throws `not_found` and `invalid`; names are unique. */
export interface Templates {
	page(request: PageRequest, call?: Call): Promise<Page<Template>>;
	get(id: Uuid, call?: Call): Promise<Template>;
	create(input: TemplateInput, call?: Call): Promise<Template>;
	/** A body that is missing is empty. */
	replace(id: Uuid, input: TemplateInput, call?: Call): Promise<Template>;
	patch(id: Uuid, input: Partial<TemplateInput>, call?: Call): Promise<Template>;
	delete(id: Uuid, call?: Call): Promise<void>;
}

/** All given conditions must hold; absent = any. `to` is compared as uniqueness is, `since` is the earliest creation. */
export interface MessageFilter {
	status?: MessageState;
	to?: string;
	campaign_unique_id?: Uuid;
	tag?: string;
	since?: string;
	ordering?: 'date_created' | '-date_created';
}

/** Selects messages: those of one submission, or of one campaign. */
export type MessageScope = { submission: Uuid } | { campaign: Uuid };

/** The outcome of each message. Throws `not_found`. */
export interface Messages {
	/** `deleted`: of all messages of the database; absent: none was deleted. */
	page(
		request: MessageFilter & PageRequest,
		call?: Call,
	): Promise<Page<Message> & { deleted?: DeletedMessages }>;
	/** The same by key, so that the last slice costs as much as the first; it is no snapshot. At most 1,000 a slice. */
	slice(request: MessageFilter & { cursor: string; limit: number }, call?: Call): Promise<KeySlice<Message>>;
	get(id: Uuid, call?: Call): Promise<MessageDetail>;
	/** The message, sent or unsent, in RFC 5322 with CRLF, as latin1-safe base64. */
	raw(id: Uuid, call?: Call): Promise<{ id: Uuid; raw_base64: string }>;
	/**
	 * Stops its sending. A canceled one stays canceled; `invalid` on `state` for one that is under way, final, or may have
	 * arrived.
	 */
	cancel(id: Uuid, call?: Call): Promise<MessageDetail>;
	/**
	 * Makes it due now: one that waits for its next attempt, or an uncertain one, which may then arrive twice. `invalid`
	 * on `state` for all others.
	 */
	retry(id: Uuid, call?: Call): Promise<MessageDetail>;
	/** An unknown scope has no messages. */
	progress(scope: MessageScope, call?: Call): Promise<SendingProgress>;
}

/** A session with its position: the number of rows acknowledged durably. */
export interface Session {
	id: string;
	position: number;
	/** For an import: the outcomes of those rows. Absent for a campaign, and where a deployment does not report them. */
	counts?: ImportCounts;
}

/** A refused row, and the reason: `code` for scripts, `error` for people. */
export interface Reject {
	/** Row number within the session, counted from 0. */
	row: number;
	code: string;
	error: string;
}

/** The result of a batch. `position` counts the rows acknowledged durably, this batch included. */
export interface Ack<Counts> {
	position: number;
	counts: Counts;
	rejects: readonly Reject[];
}

/** How an import treats existing subscribers of the list; part of the job's identity. */
export interface ImportSpec {
	list_id: number;
	on_conflict: 'update' | 'skip' | 'error';
	reactivate: boolean;
}

/** read = created + updated + unchanged + duplicate + rejected, always. */
export interface ImportCounts {
	created: number;
	updated: number;
	unchanged: number;
	duplicate: number;
	rejected: number;
	/**
	 * Rows with a `disable_reason` of their own that was kept and makes no suppression (`importedReason`); the other
	 * counts include them. Absent: none.
	 */
	other_reasons?: number;
}

/**
 * At most 4 MiB of rows. `columns` are `email` (required), `name`, `is_active`, `disable_reason`, `meta.VARIABLE`,
 * which gives a text, and `meta`, the JSON of an object for values that are no texts or empty; `cells` is row-major,
 * `null` keeps the stored value. `first` counts rows from 0, so a batch whose answer was lost is put again.
 */
export interface ImportBatch {
	first: number;
	columns: readonly string[];
	cells: readonly (string | null)[];
}

/** Imports as sessions of numbered batches. Each `put` is atomic; throws `not_found`, `conflict`, `invalid`, `too_large`. */
export interface Imports {
	/** `key` names the job (list, source hash, mapping, options): the same key reopens it at its position. */
	open(key: string, spec: ImportSpec, call?: Call): Promise<Session>;
	/** The same `first` again: the stored ack again. A gap is `conflict`. Counts are those of this batch. */
	put(id: string, batch: ImportBatch, call?: Call): Promise<Ack<ImportCounts>>;
	/**
	 * `put` of checked rows; only where the engine runs in this process. The next batches may be put before the answer:
	 * they are taken in order and share commits, and after a failure none is taken.
	 */
	putChecked?(id: string, batch: CheckedBatch): Promise<Ack<ImportCounts>>;
	/** Closes the session; its key may then be used again. Counts are those of the whole session. */
	finish(id: string, call?: Call): Promise<ImportCounts>;
}

/** The shared part of a campaign's messages: a send request without its recipients. */
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
	/** The source of its rows, when they are put: the same name with another source is another spec. */
	source?: CampaignSource;
}

/** read = staged + suppressed + rejected + left_out. */
export interface AcceptCounts {
	staged: number;
	suppressed: number;
	rejected: number;
	/** Subscribers of its lists that the audience leaves out; absent: none. */
	left_out?: number;
}

/** The answer to a list. Counts are those of this call. */
export interface ListAck extends Ack<AcceptCounts> {
	/** The time of the call ended before the list did: call again. Absent: the whole list was read. */
	is_partial?: true;
}

/** The state of a campaign. */
export interface CampaignStatus {
	/** The campaign's UUID. */
	id: Uuid;
	key: string;
	state: 'staged' | 'released' | 'canceled';
	/** Released, and no message waits for a try, or for a decision where a service may have received it. */
	is_finished: boolean;
	messages: CampaignMessages;
	/** Messages of send calls that joined it by its UUID; absent: none. They do not wait for it, nor it for them. */
	joined?: CampaignMessages;
	/** Recipients found, staged or not. */
	counts: AcceptCounts;
	/** The five commonest replies for messages that failed, bounced or are deferred; absent: none. */
	replies?: readonly CommonReply[];
	/** When it may leave; absent: from its release on. */
	plan?: CampaignPlan;
	/** By list, in the order of the lists; absent: it has none. */
	lists?: readonly ListCounts[];
	/** What its mails have with them; absent: nothing, or each request has its own. */
	attachments?: readonly AttachedFile[];
}

/** One recipient of a campaign; `context` replaces the campaign's own values, and those replace the subscriber's meta. */
export interface Recipient {
	to: string;
	context?: Readonly<Record<string, string>>;
	/** Where the row is in its source, for people: kept for the results. */
	line?: number;
	/** The source's row is not valid: it counts as rejected and is kept with this error. */
	refused?: { code: string; error: string };
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
	/** Refuses as `open` would, and opens nothing. */
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
