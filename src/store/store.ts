/**
 * What the engine needs to be kept. Commands are data: every argument and result is plain and structured-cloneable,
 * every method is one atomic operation, and what must hold together is checked inside it by the rules of
 * `engine/rules`. A write's promise resolves after its commit is durable.
 */

import type {
	AcceptCounts,
	Ack,
	ImportBatch,
	ImportCounts,
	ImportSpec,
	MailingStatus,
	MessageFilter,
	MessageScope,
	Session,
} from '../api/capabilities.js';
import type { CheckedBatch } from '../api/checked-batch.js';
import type { Micros } from '../api/datetime.js';
import type { WebhookDelivery, WebhookDeliveryDetail } from '../api/deliveries.js';
import type { Erasure } from '../api/erasures.js';
import type { FieldErrors } from '../api/errors.js';
import type { FieldInput, ListInput, SubscriberInput, TemplateInput, WebhookInput } from '../api/inputs.js';
import type { Mailing, MailingResults } from '../api/mailings.js';
import type {
	DeliveryAttempt,
	EventType,
	Field,
	List,
	Message,
	MessageReport,
	MessageState,
	Sender,
	Subscriber,
	SubscriberFilter,
	Template,
	Uuid,
	Webhook,
} from '../api/records.js';
import type { ReportOutcome, ReturnedReport } from './bounces.js';
import type { StoredDkimKey, StoredKey, StoredToken } from './keys.js';
import type { MailingAck, OpenMailing, RecipientRow, RequestedRow } from './mailings.js';
import type { DeliveryConditions, NotificationWrites } from './notifications.js';
import type { Leased, LimitHold, LimitWait, Queue, QueuePause, QueueState } from './queue.js';
import type { Acceptance, IdempotencyKey, StoredSubmission, Submission } from './submissions.js';
import type { SuppressionReads, SuppressionWrites } from './suppressions.js';

/** A store of one project; `close` waits for what is being written. */
export interface Store {
	readonly reads: Reads;
	readonly writes: Writes;
	readonly queue: Queue;
	close(): Promise<void>;
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

/** Outcome of a change of one record; `refused` carries what the stored state says against it. */
export type Written<T> =
	| { kind: 'written'; record: T }
	| { kind: 'not_found' }
	| { kind: 'refused'; errors: FieldErrors };

/** A calendar day of the database's time zone, `YYYY-MM-DD`. */
export type Day = string;

/** Each read sees one committed state. `null` = no such record. */
export interface Reads extends SuppressionReads {
	pageLists(c: PageOf): Promise<Slice<List>>;
	getList(c: { id: number }): Promise<List | null>;
	/** `null`: no such list. */
	pageSubscribers(
		c: PageOf & { list_id: number; filter: SubscriberFilter },
	): Promise<Slice<Subscriber> | null>;
	getSubscriber(c: { list_id: number; id: number }): Promise<Subscriber | null>;
	/** Up to `limit` subscribers with an id above `after`, ascending; never counts. `null`: no such list. */
	sliceSubscribers(c: {
		list_id: number;
		after: number;
		limit: number;
		filter: SubscriberFilter;
	}): Promise<Subscriber[] | null>;
	pageFields(c: PageOf): Promise<Slice<Field>>;
	getField(c: { id: number }): Promise<Field | null>;
	/** Subscribers of all lists whose meta holds the variable. */
	countFieldUses(c: { id: number }): Promise<number>;
	pageWebhooks(c: PageOf): Promise<Slice<Webhook>>;
	getWebhook(c: { id: number }): Promise<Webhook | null>;
	/** Those whose target answered 410, by id, and how many deliveries wait for each. */
	stoppedWebhooks(): Promise<{ id: number; stopped_at: Micros; waiting: number }[]>;
	/** Of one webhook, in the order they were made. */
	pageDeliveries(c: DeliveryConditions & PageOf): Promise<Slice<WebhookDelivery>>;
	getDelivery(c: { webhook_id: number; id: Uuid }): Promise<WebhookDeliveryDetail | null>;
	pageTemplates(c: PageOf): Promise<Slice<Template>>;
	getTemplate(c: { id: Uuid }): Promise<Template | null>;
	pageSenders(c: PageOf): Promise<Slice<Sender>>;
	/** Without regard to case; `null` when nobody verified it. */
	findSender(c: { email_key: string }): Promise<Sender | null>;
	pageMessages(
		c: PageOf & { filter: MessageFilter & { to_key?: string; since_at?: Micros } },
	): Promise<Slice<Message>>;
	getMessage(c: { id: Uuid }): Promise<{
		message: Message;
		attempts: DeliveryAttempt[];
		reports: MessageReport[];
		rendering: Leased;
	} | null>;
	getSubmission(c: { id: Uuid }): Promise<StoredSubmission | null>;
	mailingStatus(c: { id: Uuid }): Promise<MailingStatus | null>;
	/** In the order they were opened; `key`: the one of that name. */
	pageMailings(c: { key?: string } & PageOf): Promise<Slice<Mailing>>;
	/** In the order of rows put. */
	sliceMailingResults(c: {
		id: Uuid;
		after: number;
		limit: number;
		only: 'findings' | null;
	}): Promise<MailingResults | null>;
	/** Messages by state, all or of one submission or mailing. */
	countMessages(c: { scope: MessageScope | null }): Promise<Partial<Record<MessageState, number>>>;
	/** What `Writes.recordReport` would come to at this moment. */
	foreseeReport(c: ReturnedReport): Promise<ReportOutcome>;
	/** The earliest `due_at` of a waiting message; `null` when none waits. */
	nextDue(c: { scope: MessageScope | null }): Promise<Micros | null>;
	/**
	 * When the first of the messages that are due and held back by a limit may get its turn, which may have come;
	 * `null`: no limit holds anything back. `perSecond` as in `Queue.lease`. `at_least`: a time before which there is
	 * nothing to do, told in no time however much is deferred; `exactly` looks through all that wakes before it.
	 */
	nextTurn(c: {
		scope: MessageScope | null;
		now: Micros;
		search: 'at_least' | 'exactly';
		perSecond?: number;
	}): Promise<Micros | null>;
	/** Limits of the settings that hold a message back; none when it does not wait, or for something else. */
	holdsOfMessage(c: { id: Uuid; now: Micros }): Promise<LimitHold[]>;
	/** Each limit of the settings; told in no time however much is held back. */
	limitWaits(c: { now: Micros }): Promise<LimitWait[]>;
	/** What holds up the queue, `manual` first; a `fault` whose `retry_at` has passed is what was met last. */
	queuePauses(): Promise<QueuePause[]>;
	/** Walks everything that waits: for a person, not for a worker. */
	queueState(c: { now: Micros }): Promise<QueueState>;
	/** Distinct messages by day of their first such event; days and types without any are left out. */
	reportFigures(c: {
		from: Day;
		to: Day;
		campaign: Uuid | null;
		tag: string | null;
		human: boolean;
	}): Promise<{ day: Day; type: EventType; count: number }[]>;
	getSettings(): Promise<Record<string, string>>;
	/** All tokens, revoked ones too, oldest first. */
	listTokens(): Promise<StoredToken[]>;
	/** By the hash of the secret; `null` for one that is unknown or revoked. */
	findToken(c: { sha256: string }): Promise<StoredToken | null>;
	/** Keys that sign what leaves, secrets and all, by domain, the oldest of each first. */
	listDkimKeys(): Promise<StoredDkimKey[]>;
	status(): Promise<StoreStatus>;
}

export interface StoreStatus {
	schema_version: number;
	size_bytes: number;
	lists: number;
	subscribers: number;
	suppressions: number;
	messages: Partial<Record<MessageState, number>>;
	/** Those whose target answered 410, since when; they begin again when they are changed or replayed. */
	stopped_webhooks: readonly { id: number; url: string; stopped_at: Micros }[];
}

/** A subscriber's changeable values; absent = keep. `unset_meta` and `merge_meta` work on what is stored at that moment. */
export interface SubscriberPatch {
	email?: string;
	name?: string;
	meta?: Record<string, unknown>;
	merge_meta?: Record<string, unknown>;
	unset_meta?: readonly string[];
	is_active?: boolean;
}

/** Each write is one atomic operation, durable when its promise resolves. */
export interface Writes extends NotificationWrites, SuppressionWrites {
	createList(c: { input: ListInput; now: Micros }): Promise<Written<List>>;
	patchList(c: { id: number; patch: Partial<ListInput> }): Promise<Written<List>>;
	/** Its subscribers go with it, its waiting bulk messages are canceled. False: no such list. */
	deleteList(c: { id: number; now: Micros }): Promise<boolean>;
	/** Deletes all subscribers of the list. `null`: no such list; else how many. */
	clearList(c: { id: number; now: Micros }): Promise<number | null>;

	createSubscriber(c: { list_id: number; input: SubscriberInput; now: Micros }): Promise<Written<Subscriber>>;
	patchSubscriber(c: {
		list_id: number;
		id: number;
		patch: SubscriberPatch;
		now: Micros;
	}): Promise<Written<Subscriber>>;
	deleteSubscriber(c: { list_id: number; id: number; now: Micros }): Promise<boolean>;
	/**
	 * What is kept of the person behind an address goes, in all lists and messages; what waits is canceled. A keyed hash
	 * stays, against which creating, moving and importing check. `fresh` becomes the key where there is none yet.
	 */
	erasePerson(c: { email_key: string; fresh: { id: number; secret: string }; now: Micros }): Promise<Erasure>;
	/** The address may be added again. False: it was not erased. */
	liftErasure(c: { email_key: string }): Promise<boolean>;

	createField(c: { input: FieldInput; now: Micros }): Promise<Written<Field>>;
	/** A rename renames the key in every subscriber's meta. */
	patchField(c: { id: number; patch: Partial<FieldInput> }): Promise<Written<Field>>;
	deleteField(c: { id: number }): Promise<boolean>;

	createWebhook(c: { input: Required<WebhookInput>; now: Micros }): Promise<Written<Webhook>>;
	patchWebhook(c: { id: number; patch: Partial<WebhookInput> }): Promise<Written<Webhook>>;
	/** Its deliveries stop: none is leased any more, and what is under way is not recorded. */
	deleteWebhook(c: { id: number }): Promise<boolean>;

	/** Names are unique: a template is looked up by its name (`refused` otherwise). */
	createTemplate(c: { id: Uuid; input: Required<TemplateInput>; now: Micros }): Promise<Written<Template>>;
	patchTemplate(c: { id: Uuid; patch: Partial<TemplateInput>; now: Micros }): Promise<Written<Template>>;
	deleteTemplate(c: { id: Uuid }): Promise<boolean>;
	createSender(c: { email: string; email_key: string; now: Micros }): Promise<Written<Sender>>;
	deleteSender(c: { id: number }): Promise<boolean>;

	/** `null` removes a setting. A new `time_zone` recounts the daily figures in the same transaction. */
	putSettings(c: { values: Readonly<Record<string, string | null>>; now: Micros }): Promise<void>;
	/** The keys of a purpose, newest first, none retired; adds `fresh` when the newest is older than `rotateAfter`, or there is none. */
	ensureKey(c: {
		purpose: 'tracking';
		fresh: { id: number; secret: string };
		rotateAfter: Micros;
		now: Micros;
	}): Promise<StoredKey[]>;
	/** False: a living token has this name already. */
	createToken(c: { sha256: string; name: string; scopes: readonly string[]; now: Micros }): Promise<boolean>;
	/** False: no living token of this name. */
	revokeToken(c: { name: string; now: Micros }): Promise<boolean>;
	/** False: the domain has a key under this selector already. */
	addDkimKey(c: Omit<StoredDkimKey, 'created_at'> & { now: Micros }): Promise<boolean>;
	/** False: there is no such key. */
	removeDkimKey(c: { domain: string; selector: string }): Promise<boolean>;

	acceptSubmission(c: Submission & { key: IdempotencyKey | null }): Promise<Acceptance>;
	openMailing(
		c: OpenMailing,
	): Promise<
		{ kind: 'opened'; session: Session } | { kind: 'conflict' } | { kind: 'refused'; errors: FieldErrors }
	>;
	/** Expands a list's active subscribers into staged messages. Adding the same list again adds nobody twice. */
	addListToMailing(c: { mailing: Uuid; list_id: number; now: Micros }): Promise<Ack<AcceptCounts> | null>;
	/** The same `first` again: the stored ack again. Rules that need stored state are checked here, row by row. */
	putMailingBatch(c: {
		mailing: Uuid;
		first: number;
		rows: readonly (RecipientRow | RequestedRow)[];
		now: Micros;
	}): Promise<MailingAck>;
	/** No further row is taken. `gap`: so many rows were put. */
	completeMailing(c: {
		mailing: Uuid;
		position: number;
	}): Promise<Exclude<MailingAck, { kind: 'acknowledged' }> | { kind: 'complete' }>;
	/** One row changes, and the stored acks go. `count_differs` releases nothing. */
	releaseMailing(c: {
		mailing: Uuid;
		expect_count: number;
		now: Micros;
	}): Promise<
		| { kind: 'released' }
		| { kind: 'count_differs'; count: number }
		| { kind: 'not_found' }
		| { kind: 'canceled' }
	>;
	cancelMailing(c: { mailing: Uuid; now: Micros }): Promise<boolean>;

	/** The same key reopens an unfinished session. `null`: no such list. `conflict`: the key stands for another spec. */
	openImport(c: {
		id: Uuid;
		key: string;
		spec: ImportSpec;
		now: Micros;
	}): Promise<Session | 'conflict' | null>;
	/**
	 * Shapes are checked already; rules that need stored state are checked here, row by row. A large batch may take
	 * several commits, the position with each: broken off and put again, it goes on and answers for all of its rows.
	 * Batches put before the one ahead is answered are taken in order.
	 */
	putImportBatch(c: { session: Uuid; batch: ImportBatch | CheckedBatch; now: Micros }): Promise<ImportAck>;
	finishImport(c: { session: Uuid; now: Micros }): Promise<ImportCounts | null>;

	/** What a person may do to one message; `engine/rules/message-actions.ts` says from which states. */
	changeMessage(c: { id: Uuid; action: MessageAction; now: Micros }): Promise<MessageChange>;

	/** Opens, clicks, unsubscribes and late bounces: figures and suppressions change in the same transaction. */
	recordEvents(c: { events: readonly TrackedEvent[] }): Promise<void>;
	/** What came back: event, figures, the message's state, suppressions and subscribers, each once a message. */
	recordReport(c: ReturnedReport): Promise<ReportOutcome>;
}

/** `cancel`: it is not sent any more. `retry`: it is due now. */
export type MessageAction = 'cancel' | 'retry';

/** `why` goes on from "The message …". */
export type MessageChange = { kind: 'changed' } | { kind: 'not_found' } | { kind: 'refused'; why: string };

export type ImportAck =
	| { kind: 'acknowledged'; ack: Ack<ImportCounts> }
	| { kind: 'gap'; position: number }
	| { kind: 'not_found' }
	| { kind: 'list_gone' };

/** Something that happened to a message after it was sent. Unknown messages are skipped. */
export interface TrackedEvent {
	message: Uuid;
	type: Exclude<EventType, 'CREATED' | 'SENT'>;
	at: Micros;
	/** Position of the link for REDIRECTED; null else. */
	link: number | null;
	machine: boolean;
	/** Sooner than this after the message was sent, or before it was, it is a machine's all the same; absent = any time is fine. */
	too_soon?: Micros;
	ip: string | null;
	user_agent: string | null;
	url: string | null;
	smtp_code: string | null;
	diagnostic: string | null;
}
