/**
 * What is ours beyond the service document. A deployment that lacks an extension has no value under its name, so that
 * calling it by mistake is a type error.
 */
import type { Api, Call, PageRequest } from './api.js';
import type { CheckedBatch } from './checked-batch.js';
import type { Deliveries } from './deliveries.js';
import type { Erasures } from './erasures.js';
import type { Exports } from './exports.js';
import type { SenderInput, SubscriberInput, TemplateInput } from './inputs.js';
import type {
	Mailing,
	MailingResults,
	MailingSource,
	RequestBatch,
	RequestsSpec,
	ResultsRequest,
} from './mailings.js';
import type {
	Message,
	MessageDetail,
	MessageState,
	Meta,
	Page,
	Report,
	ReportQuery,
	Sender,
	Subscriber,
	Template,
	Uuid,
} from './records.js';
import type { Suppressions } from './suppressions.js';

/** What a deployment can do beyond the service document; learnt once, never an error. */
export interface Capabilities {
	readonly service: 'mailctl' | 'unknown';
	/** False: an unanswered `send` is never repeated by the client. */
	readonly idempotentSend: boolean;
	/** Present = callable. */
	readonly ext: Readonly<Partial<Extensions>>;
}

/** Every extension there is, by the name a deployment announces it under. */
export interface Extensions {
	imports: Imports;
	mailings: Mailings;
	messages: Messages;
	templates: Templates;
	senders: Senders;
	reports: ReportsPlus;
	subscribers: SubscribersPlus;
	fields: FieldsPlus;
	erasures: Erasures;
	exports: Exports;
	deliveries: Deliveries;
	suppressions: Suppressions;
}

/** A command wants an extension this deployment lacks. */
export class MissingExtension extends Error {
	override readonly name = 'MissingExtension';
	readonly extension: keyof Extensions;
	constructor(extension: keyof Extensions) {
		super(`this deployment has no "${extension}": it is an extension of mailctl's own engine and server`);
		this.extension = extension;
	}
}

/** The extension, or `MissingExtension` (exit 2) before anything is written. */
export async function need<K extends keyof Extensions>(api: Api, name: K): Promise<Extensions[K]> {
	const { ext } = await api.capabilities();
	const extension = ext[name];
	if (extension === undefined) throw new MissingExtension(name);
	return extension;
}

/** Message templates. Throws `not_found` and `invalid`; names are unique. */
export interface Templates {
	page(request: PageRequest, call?: Call): Promise<Page<Template>>;
	get(id: Uuid, call?: Call): Promise<Template>;
	create(input: TemplateInput, call?: Call): Promise<Template>;
	patch(id: Uuid, input: Partial<TemplateInput>, call?: Call): Promise<Template>;
	delete(id: Uuid, call?: Call): Promise<void>;
}

/** Verified sender addresses. Throws `not_found` and `invalid`; addresses are unique without regard to case. */
export interface Senders {
	page(request: PageRequest, call?: Call): Promise<Page<Sender>>;
	create(input: SenderInput, call?: Call): Promise<Sender>;
	delete(id: number, call?: Call): Promise<void>;
}

/** All given conditions must hold; absent = any. */
export interface MessageFilter {
	status?: MessageState;
	/** Exact address, compared as uniqueness is. */
	to?: string;
	campaign_unique_id?: Uuid;
	/** Created at or after, `YYYY-MM-DDTHH:MM:SS.ffffff`. */
	since?: string;
}

/** Which messages: those of one submission, or of one mailing. */
export type MessageScope = { submission: Uuid } | { mailing: Uuid };

/** How far the sending of a scope is. */
export interface SendingProgress {
	/** Messages by state; absent = 0. */
	messages: Partial<Record<MessageState, number>>;
	/** Why the mail server takes nothing at the moment; null = it does, or nobody here knows. */
	paused: string | null;
}

/** What became of each message, oldest first. Throws `not_found`. */
export interface Messages {
	page(request: MessageFilter & PageRequest, call?: Call): Promise<Page<Message>>;
	get(id: Uuid, call?: Call): Promise<MessageDetail>;
	/** The message as it is (or would be) sent, RFC 5322 with CRLF, as latin1-safe base64. */
	raw(id: Uuid, call?: Call): Promise<{ id: Uuid; raw_base64: string }>;
	/**
	 * It is not sent any more. What is canceled already stays so; `invalid` on `state` for one that is under way, final,
	 * or may have arrived.
	 */
	cancel(id: Uuid, call?: Call): Promise<MessageDetail>;
	/**
	 * It is due now: one that waits for its next attempt, or one that is uncertain, which may then arrive twice.
	 * `invalid` on `state` for all others.
	 */
	retry(id: Uuid, call?: Call): Promise<MessageDetail>;
	/** An unknown scope has no messages. */
	progress(scope: MessageScope, call?: Call): Promise<SendingProgress>;
}

/** Views of the report that the document lacks (api-decisions 36). */
export interface ReportsPlus {
	report(query: ReportQuery & { tag?: string; human?: boolean }, call?: Call): Promise<Report>;
}

/** A change of a subscriber whose meta is merged where it is stored, so that two writers lose nothing. */
export interface MetaChange {
	set: Meta;
	unset: readonly string[];
}

/** Atomic changes of subscribers that the document has no operation for. Throws `not_found` and `invalid`. */
export interface SubscribersPlus {
	/** `patch` and the merged meta in one operation; `meta` of `patch` is not looked at. */
	merge(
		listId: number,
		id: number,
		change: MetaChange & { patch: Partial<Omit<SubscriberInput, 'meta'>> },
		call?: Call,
	): Promise<Subscriber>;
	/** Deletes all subscribers of a list in one operation; answers how many. */
	clear(listId: number, call?: Call): Promise<number>;
}

/** What is worth knowing before a field is renamed or deleted. Throws `not_found`. */
export interface FieldsPlus {
	/** Subscribers of all lists whose meta holds the variable. */
	countUses(id: number, call?: Call): Promise<number>;
}

/** A session that knows its position: the number of rows acknowledged durably. */
export interface Session {
	id: string;
	position: number;
	/** Of an import: what became of those rows. Absent for a mailing, and where a deployment does not tell. */
	counts?: ImportCounts;
}

/** A row that was not taken, and why: `code` for scripts, `error` for people. */
export interface Reject {
	/** Row number within the session, counted from 0. */
	row: number;
	code: string;
	error: string;
}

/** What a batch came to. `position` counts the rows acknowledged durably, this batch included. */
export interface Ack<Counts> {
	position: number;
	counts: Counts;
	rejects: readonly Reject[];
}

/** How an import treats who is in the list already; part of what makes a job the same job. */
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
}

/**
 * At most 4 MiB of rows. `columns` are `email` (required), `name`, `is_active`, `disable_reason`, `meta.VARIABLE`, which
 * gives a text, and `meta`, the JSON of an object for values that are none or empty; `cells` is row-major, `null` keeps what is there. `first` counts rows from 0, so a lost answer is put again.
 */
export interface ImportBatch {
	first: number;
	columns: readonly string[];
	cells: readonly (string | null)[];
}

/** Imports as sessions of numbered batches. Each `put` is atomic; throws `not_found`, `conflict`, `invalid`, `too_large`. */
export interface Imports {
	/** `key` names the job (list, source hash, mapping, options): the same key reopens it where it stood. */
	open(key: string, spec: ImportSpec, call?: Call): Promise<Session>;
	/** The same `first` again: the stored ack again. A gap is `conflict`. Counts are those of this batch. */
	put(id: string, batch: ImportBatch, call?: Call): Promise<Ack<ImportCounts>>;
	/**
	 * `put` of checked rows; only where the engine runs in this process. The next batches may be put before the answer:
	 * they are taken in order and share commits, and after one that fails none is taken.
	 */
	putChecked?(id: string, batch: CheckedBatch): Promise<Ack<ImportCounts>>;
	/** Closes the session; its key may then be used anew. Counts are those of the whole session. */
	finish(id: string, call?: Call): Promise<ImportCounts>;
}

/** What all messages of a mailing share: a send request without its recipients. */
export interface MailingSpec {
	from: string;
	type: 'TRANSACTIONAL' | 'BULK';
	subject?: string;
	text_body?: string;
	html_body?: string;
	template_unique_id?: Uuid;
	reply_to?: readonly string[];
	headers?: Readonly<Record<string, string>>;
	disable_inline?: boolean;
	context?: Readonly<Record<string, string>>;
	tag?: string;
	campaign_unique_id?: Uuid;
	/** The list it is meant for, whose subscribers the recipients are: the same job with another list is another spec. */
	list_id?: number;
	/** A variable without a value rejects the row (api-decisions 24); so it is unless said otherwise. */
	strict_vars?: boolean;
	/** Where its rows come from, when they are put: the same job with another source is another spec. */
	source?: MailingSource;
}

/** read = staged + suppressed + rejected. */
export interface AcceptCounts {
	staged: number;
	suppressed: number;
	rejected: number;
}

/** Where a mailing stands. */
export interface MailingStatus {
	/** The campaign's UUID. */
	id: Uuid;
	key: string;
	state: 'staged' | 'released' | 'canceled';
	/** Messages by state; absent = 0. */
	messages: Partial<Record<MessageState, number>>;
	/** Recipients found, staged or not. */
	counts: AcceptCounts;
}

/** One recipient of a mailing; `context` goes over the mailing's own, and that over the subscriber's meta. */
export interface Recipient {
	to: string;
	context?: Readonly<Record<string, string>>;
	/** Where the row is in its source, for people: kept for the results. */
	line?: number;
	/** The source's row is none that could be sent to: it is counted and kept as rejected with these words. */
	refused?: { code: string; error: string };
}

/** At most 4 MiB; `first` counts rows from 0, so a lost answer is put again. */
export interface RecipientBatch {
	first: number;
	recipients: readonly Recipient[];
}

/** Mailings: staged, then released in one stroke. Throws `not_found`, `conflict`, `invalid`. */
export interface Mailings {
	/**
	 * `key` is the job's name, unique for ever; the same key with another spec is `conflict`. Only a mailing that was
	 * canceled before its release gives its name back (the engine then lists it under another). The position counts rows
	 * that were put: subscribers added from lists are numbered apart, so that a file goes on where it stood.
	 */
	open(key: string, spec: MailingSpec | RequestsSpec, call?: Call): Promise<Session>;
	/**
	 * The same `first` again: the stored ack again. A gap is `conflict`, and so is any batch after the release. Counts
	 * are those of this batch. A recipient of the wrong shape refuses the whole batch (`invalid`), a bad value rejects
	 * its row: `blank`, `invalid`, `duplicate`, `missing_variable`, `null_characters_not_allowed`, …
	 */
	put(id: string, batch: RecipientBatch, call?: Call): Promise<Ack<AcceptCounts>>;
	/**
	 * As `put`, for a mailing of requests. Whatever a send call would refuse rejects its row; counts are those of
	 * recipients, a rejected request being one. The same address twice in requests that are alike but for `to` is
	 * `duplicate`.
	 */
	putRequests(id: string, batch: RequestBatch, call?: Call): Promise<Ack<AcceptCounts>>;
	/** No further row comes: kept, so that a later run need not have the source. `conflict`: other rows were put. */
	complete(id: string, rows: { position: number }, call?: Call): Promise<void>;
	/**
	 * Stages every active subscriber of the list, beside the data. At most 100 rejects are listed; called again it lists
	 * those of the earlier call, too, for as long as nothing is released.
	 */
	addList(id: string, listId: number, call?: Call): Promise<Ack<AcceptCounts>>;
	/** All staged rows at once may be leased; `conflict` when the count is another. */
	release(id: string, expected: { expect_count: number }, call?: Call): Promise<void>;
	/** Drops a staged mailing; cancels what a released one has not sent. */
	cancel(id: string, call?: Call): Promise<void>;
	status(id: string, call?: Call): Promise<MailingStatus>;
	/** By id, the newest last; `key`: the one mailing of that name, or none. */
	page(request: { key?: string } & PageRequest, call?: Call): Promise<Page<Mailing>>;
	/**
	 * What became of the rows put, in their order, at most 1,000 a call; what came from lists is not among them.
	 * `findings`: rejected ones alone.
	 */
	results(id: string, request: ResultsRequest, call?: Call): Promise<MailingResults>;
}
