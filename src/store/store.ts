/**
 * The storage interface of the engine. Commands are plain, structured-cloneable data. Every method is one atomic
 * operation that applies the rules of `engine/rules`. A write resolves after its commit is durable.
 */
import type { EmailKey } from '../api/address.js';
import type { AttachedFile, StoredBytes } from '../api/attachments.js';
import type {
	Ack,
	ImportBatch,
	ImportCounts,
	ImportSpec,
	MessageFilter,
	MessageScope,
	Session,
} from '../api/capabilities.js';
import type { Clock, Day, Micros } from '../api/datetime.js';
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
import type { BounceCounts, Joined } from '../api/reports.js';
import type { CheckedBatch } from '../api/row-texts.js';
import type {
	NewSuppression,
	Suppression,
	SuppressionAck,
	SuppressionFilter,
	SuppressionReason,
	SuppressionRemoval,
} from '../api/suppressions.js';
import type { Audience, ReturnedReport } from '../engine/rules/outcomes.js';
import type {
	Acceptance,
	CampaignReads,
	CampaignWrites,
	IdempotencyKey,
	OldMessage,
	StoredSubmission,
	Submission,
} from './campaigns.js';
import type {
	KeyWanted,
	MaintenanceReads,
	MaintenanceWrites,
	StoredDkimKey,
	StoredKey,
	StoredToken,
} from './maintenance.js';
import type {
	DeliveryConditions,
	Fence,
	Leased,
	LimitHold,
	LimitWait,
	NotificationWrites,
	Queue,
	QueuePause,
	QueueState,
	QueueWorker,
} from './queue.js';

export interface Store {
	readonly reads: Reads;
	readonly writes: Writes;
	readonly queue: Queue;
	/** The clock that several machines share. If absent, use this machine's. */
	readonly clock?: Clock;
	onReady?(listener: () => void): () => void;
	close(): Promise<void>;
}

/** After an abort, an operation in slices starts no further slice and rejects with the reason. A repeat continues it. */
export interface Means {
	signal?: AbortSignal | undefined;
}

export interface PageOf {
	page: number;
	page_size: number;
}

export interface Slice<T> {
	count: number;
	results: T[];
}

export type Written<T> =
	| { kind: 'written'; record: T }
	| { kind: 'not_found' }
	| { kind: 'refused'; errors: FieldErrors };

/** Treats records of other clients as missing. */
export interface Seen {
	only_of?: string;
}

/** Each read sees one committed state. `null` means that the record does not exist. */
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
	stoppedWebhooks(): Promise<{ id: number; stopped_at: Micros; waiting: number }[]>;
	pageDeliveries(
		c: DeliveryConditions & PageOf & Pick<DeliveryFilter, 'ordering'>,
	): Promise<Slice<WebhookDelivery>>;
	getDelivery(c: { webhook_id: number; id: Uuid }): Promise<WebhookDeliveryDetail | null>;
	pageTemplates(c: PageOf): Promise<Slice<Template>>;
	getTemplate(c: { id: Uuid }): Promise<Template | null>;
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
	getOldMessage(c: { id: Uuid }): Promise<OldMessage | null>;
	getSubmission(c: { id: Uuid }): Promise<StoredSubmission | null>;
	/** Slow, because no index leads to addresses of copies and refused rows. */
	getPerson(c: { email_key: string }): Promise<Person>;
	/** Newest first; `before`: the `next` of the previous slice. */
	slicePersonMessages(c: {
		email_key: string;
		since_at: Micros | null;
		before: number | null;
		limit: number;
		now: Micros;
	}): Promise<PersonMessages>;
	countMessages(c: { scope: MessageScope | null } & Seen): Promise<Partial<Record<MessageState, number>>>;
	countWaiting(): Promise<Partial<Record<MessageState, number>>>;
	foreseeReport(c: ReturnedReport): Promise<ReportOutcome>;
	nextDue(c: { scope: MessageScope | null }): Promise<Micros | null>;
	/**
	 * The earliest time at which a message held by a limit may be sent; `null` if none is held. `perSecond` is as in
	 * `Queue.lease`.
	 */
	nextTurn(c: { scope: MessageScope | null; now: Micros; perSecond?: number }): Promise<Micros | null>;
	holdsOfMessage(c: { id: Uuid; now: Micros }): Promise<LimitHold[]>;
	limitWaits(c: { now: Micros }): Promise<LimitWait[]>;
	queuePauses(): Promise<QueuePause[]>;
	revokedLeases(c: { fences: readonly Fence[] }): Promise<Uuid[]>;
	queueState(c: { now: Micros }): Promise<QueueState>;
	hasWorker(c: { now: Micros }): Promise<boolean>;
	getSettings(): Promise<Record<string, string>>;
	clockAhead(c: { now: Micros }): Promise<Micros>;
	takesWrites(): Promise<boolean>;
	listTokens(): Promise<StoredToken[]>;
	findToken(c: { sha256: string }): Promise<StoredToken | null>;
	listDkimKeys(): Promise<StoredDkimKey[]>;
	secretCounts(): Promise<{ key: string | null; secrets: number }[]>;
}

/** Absent members keep their value. `unset_meta` and `merge_meta` apply to the stored meta. */
export interface SubscriberPatch {
	email?: string;
	name?: string;
	meta?: Record<string, unknown>;
	merge_meta?: Record<string, unknown>;
	unset_meta?: readonly string[];
	/** With `default`, a new subscriber is active unless a lasting suppression of the address exists. */
	is_active?: boolean | 'default';
}

export interface Writes
	extends MaintenanceWrites,
		NotificationWrites,
		SuppressionWrites,
		CampaignWrites,
		ImportWrites,
		RowImportWrites {
	/**
	 * With `unless_named`, returns an existing list of that name with `was_there`. A repeat with the same `key` returns
	 * the list that the first call created, without `was_there`. `key_conflict`: the key belongs to another request.
	 */
	createList(c: {
		input: ListInput;
		now: Micros;
		unless_named?: true;
		key?: IdempotencyKey | null;
	}): Promise<(Written<List> & { was_there?: true }) | { kind: 'key_conflict' }>;
	patchList(c: { id: number; patch: Partial<ListInput> }): Promise<Written<List>>;
	patchListDetails(c: { id: number; patch: Partial<ListDetailsInput> }): Promise<Written<ListDetails>>;
	deleteList(c: { id: number; now: Micros }, means?: Means): Promise<boolean>;
	clearList(c: { id: number; now: Micros }, means?: Means): Promise<number | null>;

	/** `if_exists`: keep (`skip`) or change (`update`, merging meta) an existing subscriber; absent: refuse. */
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
	 * Deletes a person's data in all lists and messages, and cancels waiting messages. Keeps a keyed hash of the address,
	 * which creating, moving and importing subscribers check.
	 */
	erasePerson(c: { email_key: string; fresh: { id: number; secret: string }; now: Micros }): Promise<Erasure>;
	liftErasure(c: { email_key: string }): Promise<boolean>;

	createField(c: { input: FieldInput; now: Micros }): Promise<Written<Field>>;
	/** A rename renames the key in every subscriber's meta. `deleteField` removes the key, in slices. */
	patchField(c: { id: number; patch: Partial<FieldInput> }): Promise<Written<Field>>;
	deleteField(c: { id: number }, means?: Means): Promise<boolean>;

	createWebhook(c: { input: Required<WebhookInput>; now: Micros }): Promise<Written<Webhook>>;
	patchWebhook(c: { id: number; patch: Partial<WebhookInput> }): Promise<Written<Webhook>>;
	deleteWebhook(c: { id: number }): Promise<boolean>;

	createTemplate(c: { id: Uuid; input: Required<TemplateInput>; now: Micros }): Promise<Written<Template>>;
	patchTemplate(c: { id: Uuid; patch: Partial<TemplateInput>; now: Micros }): Promise<Written<Template>>;
	deleteTemplate(c: { id: Uuid }): Promise<boolean>;
	/** Stores checked bytes, and deletes expired uploads. Null if the owner has too many unused uploads. */
	putAttachment(c: {
		sha256: string;
		bytes: Uint8Array;
		owner?: string;
		now: Micros;
	}): Promise<StoredBytes | null>;
	createSender(c: SenderInput & { email_key: string; now: Micros }): Promise<Written<Sender>>;
	patchSender(c: { id: number; patch: Partial<SenderInput>; email_key?: string }): Promise<Written<Sender>>;
	deleteSender(c: { id: number }): Promise<boolean>;

	/** `null` removes a setting. A new `time_zone` recomputes the daily figures. */
	putSettings(c: { values: Readonly<Record<string, string | null>>; now: Micros }): Promise<void>;
	/**
	 * Rewrites every secret: wrapped with the store's first key, or plain. If other processes run, which may lack the
	 * key, changes nothing and returns them.
	 */
	rewriteSecrets(c: { as: 'wrapped' | 'plain'; isTrial: boolean; now: Micros }): Promise<OtherProcess[]>;
	ensureKey(c: KeyWanted): Promise<StoredKey[]>;
	createToken(c: { sha256: string; name: string; scopes: readonly string[]; now: Micros }): Promise<boolean>;
	revokeToken(c: { name: string; now: Micros }): Promise<boolean>;
	addDkimKey(c: Omit<StoredDkimKey, 'created_at'> & { now: Micros }): Promise<boolean>;
	removeDkimKey(c: { domain: string; selector: string }): Promise<boolean>;

	acceptSubmission(c: Seen & Submission & { key: IdempotencyKey | null }): Promise<Acceptance>;

	changeMessage(c: { id: Uuid; action: MessageAction; now: Micros } & Seen): Promise<MessageChange>;

	/** Changes figures and suppressions in the same transaction. */
	recordEvents(c: { events: readonly TrackedEvent[] }): Promise<void>;
	/** Records a report once per message: updates its state and figures, the suppressions, and the subscribers. */
	recordReport(c: ReturnedReport): Promise<ReportOutcome>;
}

export type OtherProcess = Pick<QueueWorker, 'host' | 'pid'> & { role: string };

export type MessageAction = 'cancel' | 'retry';

type MessageChange = { kind: 'changed' } | { kind: 'not_found' } | { kind: 'refused'; why: string };

export interface TrackedEvent {
	message: Uuid;
	type: Exclude<EventType, 'CREATED' | 'SENT'>;
	at: Micros;
	link: number | null;
	machine: boolean;
	/** An event that comes sooner than this after the sending counts as a bot's. */
	too_soon?: Micros;
	/** The person leaves all lists, instead of only the message's list. */
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
	/** Returns `meta` as stored, because the caller checks what it parses. This saves an eighth of the time. */
	isChecked?: true;
}

interface SubscriberLists {
	pageSubscribers(c: PageOf & Chosen): Promise<Slice<Subscriber> | null>;
	encodeSubscriberPage(c: PageOf & Chosen): Promise<{ count: number; results: EncodedSubscribers } | null>;
	sliceSubscribers(c: ChosenSlice): Promise<Subscriber[] | null>;
	encodeSubscriberSlice(c: ChosenSlice): Promise<EncodedSubscribers | null>;
	encodeSubscriberTuples(c: ChosenTuples): Promise<EncodedSubscribers | null>;
}

type StoredMessageFilter = MessageFilter & { to_key?: string; since_at?: Micros };

export interface MessagePlace {
	submission_seq: number;
	id: number;
}

interface MessageLists {
	pageMessages(
		c: PageOf & Seen & { filter: StoredMessageFilter },
	): Promise<Slice<Message> & { last: MessagePlace | null }>;
	sliceMessages(
		c: Seen & { filter: StoredMessageFilter; after: MessagePlace; limit: number },
	): Promise<{ results: Message[]; last: MessagePlace | null }>;
}

/** The valid part of an input, to check against stored data; `id` null: a new record. */
export type Question =
	| { kind: 'subscriber'; list_id: number; id: number | null; patch: SubscriberPatch; now: Micros }
	| { kind: 'field'; id: number | null; variable?: string }
	| { kind: 'template'; id: string | null; name?: string };

interface FieldErrorReads {
	fieldErrors(c: Question): Promise<FieldErrors>;
}

/**
 * `known`: the same mail or the same report of the message has been recorded. `unmatched`: no such message or
 * recipient. `in_flight`: the message is leased, so try again after its outcome.
 */
export type ReportOutcome =
	| ({ kind: 'recorded' } & RecordedReport)
	| { kind: 'known' }
	| { kind: 'unmatched' }
	| { kind: 'in_flight' };

export interface RecordedReport {
	effect: ReportEffect;
	address: EmailKey;
}

export type ReportEffect = 'hard_bounce' | 'soft_bounce' | 'complaint';

interface SuppressionReads {
	pageSuppressions(c: {
		page: number;
		page_size: number;
		filter: SuppressionFilter;
		now: Micros;
	}): Promise<{ count: number; results: Suppression[] }>;
	sliceSuppressions(c: {
		after: { email_key: EmailKey; reason: string; list_id: number | null } | null;
		limit: number;
		filter: SuppressionFilter;
		now: Micros;
	}): Promise<Suppression[]>;
	findSuppression(c: {
		email_key: EmailKey;
		reason: SuppressionReason;
		list_id: number | null;
		now: Micros;
	}): Promise<Suppression | null>;
	compareSuppressions(c: { rows: readonly NewSuppression[]; now: Micros }): Promise<SuppressionAck>;
}

interface SuppressionWrites {
	/** Suppressions without an end make their subscribers inactive. Rejects erased addresses and missing lists. */
	putSuppressions(c: { rows: readonly NewSuppression[]; now: Micros }): Promise<SuppressionAck>;
	/** A null `reason` means all reasons, a null `list_id` any list. Keeps subscribers unchanged. Null: nothing matched. */
	removeSuppressions(c: {
		email_key: EmailKey;
		reason: SuppressionReason | null;
		list_id: number | null;
		now: Micros;
	}): Promise<SuppressionRemoval | null>;
}

export type ImportAck =
	| { kind: 'acknowledged'; ack: Ack<ImportCounts> }
	| { kind: 'gap'; position: number }
	| { kind: 'not_found' }
	| { kind: 'list_gone' };

interface ImportWrites {
	openImport(c: {
		id: Uuid;
		key: string;
		spec: ImportSpec;
		now: Micros;
	}): Promise<Session | 'conflict' | null>;
	/**
	 * A large batch may take several commits, each with its position. A repeated batch continues an interrupted one, and
	 * its answer covers all rows. Send batches in order.
	 */
	putImportBatch(c: {
		session: Uuid;
		batch: ImportBatch | CheckedBatch;
		now: Micros;
		/** Inserts without a look-up; an existing row makes the batch fail. */
		expects_new?: boolean | undefined;
	}): Promise<ImportAck>;
	finishImport(c: { session: Uuid; now: Micros }): Promise<ImportCounts | null>;
}

export type RowIntent = 'create' | 'update';

export interface RowImport {
	import: number;
	position: number;
	counts: ImportCounts;
	reasons_left_out: number;
	last: { first: number; ack: Ack<ImportCounts> } | null;
	intents: readonly { row: number; intent: RowIntent }[];
}

interface RowBatch {
	first: number;
	ack: Ack<ImportCounts>;
	reasons_left_out: number;
	taken: readonly string[];
}

export interface RowImportReads {
	sliceImportAddresses(c: { import: number; after: string; limit: number }): Promise<string[]>;
}

export interface RowImportWrites {
	openRowImport(c: { key: string; now: Micros }): Promise<RowImport>;
	declareRow(c: { import: number; row: number; intent: RowIntent }): Promise<void>;
	acknowledgeRows(c: RowBatch & { import: number }): Promise<void>;
	dropRowImport(c: { import: number }): Promise<void>;
}

interface ReportReads {
	reportFigures(c: {
		from: Day;
		to: Day;
		campaign: Uuid | null;
		tag: string | null;
		human: boolean;
	}): Promise<ReportFigures>;
	campaignLife(c: { campaign: Uuid }): Promise<CampaignLife | null>;
	reportDetails(c: { from: Day; to: Day; campaign: Uuid | null; lists: boolean }): Promise<DetailFigures>;
	linkFigures(c: { campaign: Uuid }): Promise<LinkFigures | null>;
}

export interface ReportFigures {
	/** Counts distinct messages by the day of their first event of each type. Omits days and types without events. */
	daily: { day: Day; type: EventType; count: number }[];
	attempted: number;
}

/** Counts distinct messages by their first event of each type; `human` excludes bots. */
export interface TypedCount {
	type: EventType | 'COMPLAINED';
	audience: Audience;
	count: number;
}

export interface DetailFigures {
	time_zone: string;
	bounced: number;
	neverSent: number;
	days: (TypedCount & { day: Day })[];
	/** `hour` counts from 1970 in local time. At most 72 hours, from the first with a sent message. */
	hours: (TypedCount & { hour: number })[];
	week: (TypedCount & { hour: number })[];
	domains: ({ domain: string } & BounceCounts)[];
	other_domains: number;
	codes: ({ code: string } & BounceCounts)[];
	lists: ListFigures[] | null;
}

export interface ListFigures {
	id: number;
	name: string;
	active: number;
	days: { day: Day; kind: keyof Joined; count: number }[];
}

export interface LinkFigures {
	contents: { sha256: string; submission: Uuid }[];
	figures: { sha256: string; link: number; audience: Audience; clicks: number; messages: number }[];
}

interface CampaignLife {
	days: { from: Day; to: Day } | null;
}
