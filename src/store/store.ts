/**
 * The storage interface of the engine. Commands are data: every argument and result is plain and structured-cloneable,
 * every method is one atomic operation. Conditions across records are checked inside it by the rules of `engine/rules`.
 * A write's promise resolves after its commit is durable.
 */

import type { EmailKey } from '../api/address.js';
import type { AttachedFile, StoredBytes } from '../api/attachments.js';
import type { MessageFilter, MessageScope } from '../api/capabilities.js';
import type { Clock, Micros } from '../api/datetime.js';
import type { DeliveryFilter, WebhookDelivery, WebhookDeliveryDetail } from '../api/deliveries.js';
import type { FieldErrors } from '../api/errors.js';
import type { EncodedSubscribers, TupleKeys } from '../api/exports.js';
import type {
	FieldInput,
	ListDetails,
	ListDetailsInput,
	ListInput,
	SenderInput,
	SubscriberInput,
	TemplateInput,
	WebhookInput,
} from '../api/inputs.js';
import type { Erasure, Person, PersonMessages } from '../api/people.js';
import type {
	DeliveryAttempt,
	EventType,
	Field,
	List,
	Message,
	MessageEvent,
	MessageReport,
	MessageState,
	Sender,
	Subscriber,
	SubscriberFilter,
	Template,
	Tracking,
	Uuid,
	Webhook,
} from '../api/records.js';
import type { ReturnedReport } from '../engine/rules/reported-recipients.js';
import type { CampaignReads, CampaignWrites } from './campaigns.js';
import type { ImportWrites, RowImportReads, RowImportWrites } from './imports.js';
import type { KeyWanted, StoredDkimKey, StoredKey, StoredToken } from './keys.js';
import type { MaintenanceReads, MaintenanceWrites } from './maintenance.js';
import type { DeliveryConditions, NotificationWrites } from './notifications.js';
import type {
	Fence,
	Leased,
	LimitHold,
	LimitWait,
	Queue,
	QueuePause,
	QueueState,
	QueueWorker,
} from './queue.js';
import type { ReportReads } from './reports.js';
import type { Acceptance, IdempotencyKey, OldMessage, StoredSubmission, Submission } from './submissions.js';
import type { SuppressionReads, SuppressionWrites } from './suppressions.js';

/** A store of one project; `close` waits for writes under way. */
export interface Store {
	readonly reads: Reads;
	readonly writes: Writes;
	readonly queue: Queue;
	/** The time by which several machines work: all commands have theirs from it. Absent: this machine's clock. */
	readonly clock?: Clock;
	/** Calls where others may have made messages ready, until the answer is called; only polling finds all. */
	onReady?(listener: () => void): () => void;
	close(): Promise<void>;
}

/**
 * Beside the command of an operation in slices: once the signal is aborted no further slice begins, and the call rejects
 * with its reason. What was done stays, and a repeated call goes on.
 */
export interface Means {
	signal?: AbortSignal | undefined;
}

/** `page` ≥ 1; a page past the end is an empty slice with the true count. */
export interface PageOf {
	page: number;
	page_size: number;
}

export interface Slice<T> {
	count: number;
	results: T[];
}

/** Outcome of a change of one record; `refused` carries the field errors by stored state. */
export type Written<T> =
	| { kind: 'written'; record: T }
	| { kind: 'not_found' }
	| { kind: 'refused'; errors: FieldErrors };

/** `only_of`: records of other clients are treated as unknown. Absent: all are visible. */
export interface Seen {
	only_of?: string;
}

export type Day = string;

/** Each read sees one committed state. `null` = no such record. */
export interface Reads
	extends MaintenanceReads,
		CampaignReads,
		FieldErrorReads,
		MessageLists,
		SubscriberLists,
		SuppressionReads,
		ReportReads,
		RowImportReads {
	pageLists(c: PageOf): Promise<Slice<List>>;
	getList(c: { id: number }): Promise<List | null>;
	getListDetails(c: { id: number }): Promise<ListDetails | null>;
	getSubscriber(c: { list_id: number; id: number }): Promise<Subscriber | null>;
	pageFields(c: PageOf): Promise<Slice<Field>>;
	getField(c: { id: number }): Promise<Field | null>;
	countFieldUses(c: { id: number }): Promise<number>;
	pageWebhooks(c: PageOf): Promise<Slice<Webhook>>;
	getWebhook(c: { id: number }): Promise<Webhook | null>;
	/** Webhooks whose target answered 410, by id, and the number of deliveries that wait for each. */
	stoppedWebhooks(): Promise<{ id: number; stopped_at: Micros; waiting: number }[]>;
	/** Deliveries of one webhook, in the order of creation unless another is asked for. */
	pageDeliveries(
		c: DeliveryConditions & PageOf & Pick<DeliveryFilter, 'ordering'>,
	): Promise<Slice<WebhookDelivery>>;
	getDelivery(c: { webhook_id: number; id: Uuid }): Promise<WebhookDeliveryDetail | null>;
	pageTemplates(c: PageOf): Promise<Slice<Template>>;
	getTemplate(c: { id: Uuid }): Promise<Template | null>;
	/** Null: not there, or about to be deleted. */
	findAttachment(c: Seen & { sha256: string; now: Micros }): Promise<StoredBytes | null>;
	getAttachment(c: { sha256: string }): Promise<Uint8Array | null>;
	pageSenders(c: PageOf): Promise<Slice<Sender>>;
	getSender(c: { id: number }): Promise<Sender | null>;
	findSender(c: { email_key: string }): Promise<Sender | null>;
	getMessage(c: { id: Uuid } & Seen): Promise<{
		message: Message;
		attempts: DeliveryAttempt[];
		events: MessageEvent[];
		reports: MessageReport[];
		tracking: Tracking;
		rendering: Leased;
		attachments: AttachedFile[];
	} | null>;
	/** What the links of its mail need, of a message that retention has deleted; null: nothing was kept, or the person is gone. */
	getOldMessage(c: { id: Uuid }): Promise<OldMessage | null>;
	getSubmission(c: { id: Uuid }): Promise<StoredSubmission | null>;
	/** Walks submissions with copies and refused rows of campaigns, as no index leads to an address in them: for a person, not for a loop. */
	getPerson(c: { email_key: string }): Promise<Person>;
	/** The newest first; `before`: the `next` of the slice before. */
	slicePersonMessages(c: {
		email_key: string;
		since_at: Micros | null;
		before: number | null;
		limit: number;
		now: Micros;
	}): Promise<PersonMessages>;
	countMessages(c: { scope: MessageScope | null } & Seen): Promise<Partial<Record<MessageState, number>>>;
	/** Messages that wait, by state; the time for it does not grow with those that are over. */
	countWaiting(): Promise<Partial<Record<MessageState, number>>>;
	foreseeReport(c: ReturnedReport): Promise<ReportOutcome>;
	/** The earliest `due_at` of a waiting message; `null` when none waits. */
	nextDue(c: { scope: MessageScope | null }): Promise<Micros | null>;
	/**
	 * When the first due message that a limit holds back may get its turn, which may be in the past; `null`: no limit
	 * holds a message back. It may be a time at which there is no room yet. `perSecond` as in `Queue.lease`.
	 */
	nextTurn(c: { scope: MessageScope | null; now: Micros; perSecond?: number }): Promise<Micros | null>;
	/** Limits of the settings that hold a message back; none when it does not wait, or waits for something else. */
	holdsOfMessage(c: { id: Uuid; now: Micros }): Promise<LimitHold[]>;
	limitWaits(c: { now: Micros }): Promise<LimitWait[]>;
	/** The pauses of the queue, `manual` first; a `fault` whose `retry_at` has passed is the last one that occurred. */
	queuePauses(): Promise<QueuePause[]>;
	/** Messages that may not begin any more: canceled while they were leased, or leased by others. */
	revokedLeases(c: { fences: readonly Fence[] }): Promise<Uuid[]>;
	/** Walks everything that waits: for a person, not for a worker. */
	queueState(c: { now: Micros }): Promise<QueueState>;
	/** Whether a process that sends, or could, was heard of in the last seconds; found at once however much waits. */
	hasWorker(c: { now: Micros }): Promise<boolean>;
	getSettings(): Promise<Record<string, string>>;
	/** How far the clock is ahead of the time by which data is deleted; 0: not far. */
	clockAhead(c: { now: Micros }): Promise<Micros>;
	/** False: a standby, or a PostgreSQL server that was made read-only. */
	takesWrites(): Promise<boolean>;
	/** All tokens, revoked ones too, oldest first. */
	listTokens(): Promise<StoredToken[]>;
	/** By the hash of the secret; `null` for an unknown or revoked one. */
	findToken(c: { sha256: string }): Promise<StoredToken | null>;
	/** Keys that sign outgoing mail, with their secrets, by domain, the oldest of each first. */
	listDkimKeys(): Promise<StoredDkimKey[]>;
	/** The number of secrets by the id of the key that wraps them; `null`: not wrapped. */
	secretCounts(): Promise<{ key: string | null; secrets: number }[]>;
}

/** A subscriber's changeable values; absent = keep. `unset_meta` and `merge_meta` apply to the meta stored then. */
export interface SubscriberPatch {
	email?: string;
	name?: string;
	meta?: Record<string, unknown>;
	merge_meta?: Record<string, unknown>;
	unset_meta?: readonly string[];
	/** `default`: active, unless a lasting suppression makes a new subscriber of the address inactive. */
	is_active?: boolean | 'default';
}

/** Each write is one atomic operation, durable when its promise resolves. */
export interface Writes
	extends MaintenanceWrites,
		NotificationWrites,
		SuppressionWrites,
		CampaignWrites,
		ImportWrites,
		RowImportWrites {
	/**
	 * `unless_named`: the first one that has the name, where one has, and `was_there`; what was added under the `key` is new
	 * again. `key_conflict`: another request has that key.
	 */
	createList(c: {
		input: ListInput;
		now: Micros;
		unless_named?: true;
		key?: IdempotencyKey | null;
	}): Promise<(Written<List> & { was_there?: true }) | { kind: 'key_conflict' }>;
	patchList(c: { id: number; patch: Partial<ListInput> }): Promise<Written<List>>;
	patchListDetails(c: { id: number; patch: Partial<ListDetailsInput> }): Promise<Written<ListDetails>>;
	/** Deletes the list with its subscribers, slice by slice, and before them cancels its waiting bulk messages. False: no such list. */
	deleteList(c: { id: number; now: Micros }, means?: Means): Promise<boolean>;
	/** Deletes all subscribers of the list, slice by slice. `null`: no such list; else their number. */
	clearList(c: { id: number; now: Micros }, means?: Means): Promise<number | null>;

	/** `if_exists`: an existing subscriber is kept (`skip`) or changed, meta merged (`update`); absent: refused. */
	createSubscriber(c: {
		list_id: number;
		input: SubscriberInput;
		if_exists?: 'skip' | 'update';
		now: Micros;
	}): Promise<Written<Subscriber>>;
	patchSubscriber(c: {
		list_id: number;
		id: number;
		patch: SubscriberPatch;
		now: Micros;
	}): Promise<Written<Subscriber>>;
	deleteSubscriber(c: { list_id: number; id: number; now: Micros }): Promise<boolean>;
	/**
	 * Deletes what is stored of the person with an address, in all lists and messages, and cancels waiting messages. A
	 * keyed hash stays, against which creating, moving and importing check. `fresh` becomes the key where there is none
	 * yet.
	 */
	erasePerson(c: { email_key: string; fresh: { id: number; secret: string }; now: Micros }): Promise<Erasure>;
	liftErasure(c: { email_key: string }): Promise<boolean>;

	createField(c: { input: FieldInput; now: Micros }): Promise<Written<Field>>;
	/** A rename renames the key in every subscriber's meta; `deleteField` takes it out, slice by slice. */
	patchField(c: { id: number; patch: Partial<FieldInput> }): Promise<Written<Field>>;
	deleteField(c: { id: number }, means?: Means): Promise<boolean>;

	createWebhook(c: { input: Required<WebhookInput>; now: Micros }): Promise<Written<Webhook>>;
	patchWebhook(c: { id: number; patch: Partial<WebhookInput> }): Promise<Written<Webhook>>;
	/** Its deliveries stop: none is leased any more, and outcomes of those under way are not recorded. */
	deleteWebhook(c: { id: number }): Promise<boolean>;

	/** Names are unique: a template is looked up by its name (`refused` otherwise). */
	createTemplate(c: { id: Uuid; input: Required<TemplateInput>; now: Micros }): Promise<Written<Template>>;
	patchTemplate(c: { id: Uuid; patch: Partial<TemplateInput>; now: Micros }): Promise<Written<Template>>;
	deleteTemplate(c: { id: Uuid }): Promise<boolean>;
	/** Stores checked bytes, and deletes uploads whose time is over. Null: the owner has too much that no content names. */
	putAttachment(c: {
		sha256: string;
		bytes: Uint8Array;
		owner?: string;
		now: Micros;
	}): Promise<StoredBytes | null>;
	/** The key is the address without regard to case, and unique (`refused` otherwise). */
	createSender(c: SenderInput & { email_key: string; now: Micros }): Promise<Written<Sender>>;
	patchSender(c: { id: number; patch: Partial<SenderInput>; email_key?: string }): Promise<Written<Sender>>;
	deleteSender(c: { id: number }): Promise<boolean>;

	/** `null` removes a setting. A new `time_zone` sums the daily figures anew in the same transaction. */
	putSettings(c: { values: Readonly<Record<string, string | null>>; now: Micros }): Promise<void>;
	/**
	 * Rewrites every secret: wrapped with the first key of the store, or plain. Beside other processes that have the
	 * database open it changes nothing and returns them, as they may lack the key. `isTrial`: nothing changes anyway.
	 */
	rewriteSecrets(c: { as: 'wrapped' | 'plain'; isTrial: boolean; now: Micros }): Promise<OtherProcess[]>;
	/** The keys of a purpose, newest first, none retired; adds `fresh` when the newest is older than `rotateAfter`, or there is none. */
	ensureKey(c: KeyWanted): Promise<StoredKey[]>;
	/** False: a valid token has this name already. */
	createToken(c: { sha256: string; name: string; scopes: readonly string[]; now: Micros }): Promise<boolean>;
	revokeToken(c: { name: string; now: Micros }): Promise<boolean>;
	/** False: the domain has a key under this selector already. */
	addDkimKey(c: Omit<StoredDkimKey, 'created_at'> & { now: Micros }): Promise<boolean>;
	removeDkimKey(c: { domain: string; selector: string }): Promise<boolean>;

	acceptSubmission(c: Seen & Submission & { key: IdempotencyKey | null }): Promise<Acceptance>;

	/** A person's change to one message; `engine/rules/message-actions.ts` says from which states. */
	changeMessage(c: { id: Uuid; action: MessageAction; now: Micros } & Seen): Promise<MessageChange>;

	/** Opens, clicks, unsubscribes and late bounces: figures and suppressions change in the same transaction. */
	recordEvents(c: { events: readonly TrackedEvent[] }): Promise<void>;
	/** Records a report: event, figures, the message's state, suppressions and subscribers, each once a message. */
	recordReport(c: ReturnedReport): Promise<ReportOutcome>;
}

export type OtherProcess = Pick<QueueWorker, 'host' | 'pid'> & { role: string };

export type MessageAction = 'cancel' | 'retry';

/** `why` continues "The message …". */
export type MessageChange = { kind: 'changed' } | { kind: 'not_found' } | { kind: 'refused'; why: string };

/** Something that happened to a message after it was sent. Unknown messages are skipped. */
export interface TrackedEvent {
	message: Uuid;
	type: Exclude<EventType, 'CREATED' | 'SENT'>;
	at: Micros;
	/** Position of the link for REDIRECTED; null else. */
	link: number | null;
	machine: boolean;
	/** An event sooner after the message was sent, or before, counts as a machine's; absent = no such limit. */
	too_soon?: Micros;
	/** For UNSUBSCRIBED: the person wants no mail of any list; otherwise only the message's list is left. */
	from_all_lists?: true;
	ip: string | null;
	user_agent: string | null;
	url: string | null;
	smtp_code: string | null;
	diagnostic: string | null;
}

interface Chosen {
	list_id: number;
	filter: SubscriberFilter;
}

interface ChosenSlice extends Chosen {
	after: number;
	limit: number;
}

interface ChosenTuples extends ChosenSlice {
	keys: TupleKeys;
	/** The caller checks what it parses: a stored `meta` stands in the text as it is, which saves an eighth. */
	isChecked?: true;
}

export interface SubscriberLists {
	pageSubscribers(c: PageOf & Chosen): Promise<Slice<Subscriber> | null>;
	encodeSubscriberPage(c: PageOf & Chosen): Promise<{ count: number; results: EncodedSubscribers } | null>;
	/** Up to `limit` subscribers with an id above `after`, ascending; never counts. */
	sliceSubscribers(c: ChosenSlice): Promise<Subscriber[] | null>;
	encodeSubscriberSlice(c: ChosenSlice): Promise<EncodedSubscribers | null>;
	/** The same as tuples, for servers and exports. */
	encodeSubscriberTuples(c: ChosenTuples): Promise<EncodedSubscribers | null>;
}

type StoredMessageFilter = MessageFilter & { to_key?: string; since_at?: Micros };

export interface MessagePlace {
	submission_seq: number;
	id: number;
}

export interface MessageLists {
	/** With a filter `count` is exact up to 100,000, or to the page behind this one. */
	pageMessages(
		c: PageOf & Seen & { filter: StoredMessageFilter },
	): Promise<Slice<Message> & { last: MessagePlace | null }>;
	/** The same by key. `last`: behind it more may follow; null: nothing does. */
	sliceMessages(
		c: Seen & { filter: StoredMessageFilter; after: MessagePlace; limit: number },
	): Promise<{ results: Message[]; last: MessagePlace | null }>;
}

/** The valid part of an input; `id`: the record to change, null for a new one. */
export type Question =
	| { kind: 'subscriber'; list_id: number; id: number | null; patch: SubscriberPatch; now: Micros }
	| { kind: 'field'; id: number | null; variable?: string }
	| { kind: 'template'; id: string | null; name?: string };

export interface FieldErrorReads {
	/** The field errors of the write at this moment; `{}`: none. Another answer may hold a moment later. */
	fieldErrors(c: Question): Promise<FieldErrors>;
}

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

export type ReportEffect = 'hard_bounce' | 'soft_bounce' | 'complaint';
