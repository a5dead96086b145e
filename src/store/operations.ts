/**
 * The operations of the store, as tables. Each row has the types of a command and its answer, and traits that the
 * SQLite and PostgreSQL drivers read. Commands and answers are plain data, because threads copy them. Each operation is
 * atomic and applies the rules of `engine/rules`. A write resolves after its commit is durable.
 */
import { emailKey } from '../api/address.js';
import type { AttachedFile, StoredBytes } from '../api/attachments.js';
import type * as campaigns from '../api/campaigns.js';
import type {
	Ack,
	ImportBatch,
	ImportCounts,
	ImportSpec,
	MessageScope,
	Session,
} from '../api/capabilities.js';
import type { Day, Micros } from '../api/datetime.js';
import type { DeliveryFilter, WebhookDelivery, WebhookDeliveryDetail } from '../api/deliveries.js';
import type { FieldErrors } from '../api/errors.js';
import type { EncodedSubscribers } from '../api/exports.js';
import type * as inputs from '../api/inputs.js';
import type { Erasure, Person, PersonMessages } from '../api/people.js';
import type * as records from '../api/records.js';
import type { Uuid } from '../api/records.js';
import type { CheckedBatch } from '../api/row-texts.js';
import type * as suppressions from '../api/suppressions.js';
import type { RecipientRow } from '../engine/rules/campaign-rows.js';
import { isBounce, isReading, type MessageAction, type ReturnedReport } from '../engine/rules/outcomes.js';
import type {
	Acceptance,
	CampaignAck,
	CampaignCanceled,
	CampaignOpened,
	IdempotencyKey,
	ListedPeople,
	OldMessage,
	OpenCampaign,
	PeopleAck,
	RequestedRow,
	StagedSlice,
	StoredSubmission,
	Submission,
} from './campaigns.js';
import type * as upkeep from './maintenance.js';
import type * as queues from './queue.js';
import type {
	CampaignLife,
	Chosen,
	ChosenSlice,
	ChosenTuples,
	DetailFigures,
	ImportAck,
	LinkFigures,
	Means,
	MessageChange,
	MessagePlace,
	OtherProcess,
	PageOf,
	Question,
	ReportFigures,
	ReportOutcome,
	RowBatch,
	RowImport,
	RowIntent,
	Seen,
	Slice,
	StoredMessageFilter,
	SubscriberPatch,
	TrackedEvent,
	Written,
} from './store.js';

export interface Hold {
	level: 'project' | 'people' | 'address' | 'key' | 'deliveries';
	of: string;
	isAlone: boolean;
}

interface Traits {
	/**
	 * The PostgreSQL driver may repeat the operation if COMMIT got no answer. Other operations need a receipt
	 * (`receipts.ts`), because a repeat would answer "not found" or "duplicate", or count twice.
	 */
	repeatable?: true;
	/** The operation may make messages due, so the PostgreSQL driver notifies the other processes. */
	wakes?: true;
	/** The operation records something that has happened outside the database, so an abort does not roll it back. */
	records?: true;
	/** A dry run rolls this operation back, then repeats it in each later transaction, which may need the new rows. */
	prepares?: true;
	/** The operation deletes data that must not stay in the file, so SQLite then truncates its log. */
	overwrites?: true;
}

interface Row<C, A> extends Traits {
	/**
	 * Advisory locks that the PostgreSQL driver holds until the transaction ends; absent: one lock on the whole project.
	 * They do not cover rows of messages, which queries lock themselves (`Dialect.lockRows`).
	 */
	holds?: (command: C) => readonly Hold[];
	/** How long the SQLite driver may delay the write, so that it shares a commit; absent: not at all. */
	waits?: (command: C) => 'briefly' | 'as_opens' | 'not';
	/** Never set: it only carries the type of the answer. */
	answer?: A;
}

type Methods<Rows> = {
	[Name in keyof Rows]: Rows[Name] extends Row<infer C, infer A>
		? (command: C, means?: Means) => Promise<A>
		: never;
};

function op<C, A>(row: Row<C, A> = {}): Row<C, A> {
	return row;
}

const alone = (level: Hold['level'], of = ''): Hold => ({ level, of, isAlone: true });
const shared = (level: Hold['level'], of = ''): Hold => ({ level, of, isAlone: false });

export const projectAlone: readonly Hold[] = [alone('project')];
const shares = shared('project');
const keepsPeople = [shares, shared('people')];
const changesPeople = [shares, alone('people')];

/** Each read sees one committed state. `null` means that the record does not exist. */
const reads = {
	pageLists: op<PageOf, Slice<records.List>>(),
	getList: op<{ id: number }, records.List | null>(),
	getListDetails: op<{ id: number }, inputs.ListDetails | null>(),
	pageSubscribers: op<PageOf & Chosen, Slice<records.Subscriber> | null>(),
	encodeSubscriberPage: op<PageOf & Chosen, { count: number; results: EncodedSubscribers } | null>(),
	sliceSubscribers: op<ChosenSlice, records.Subscriber[] | null>(),
	encodeSubscriberSlice: op<ChosenSlice, EncodedSubscribers | null>(),
	encodeSubscriberTuples: op<ChosenTuples, EncodedSubscribers | null>(),
	getSubscriber: op<{ list_id: number; id: number }, records.Subscriber | null>(),
	pageFields: op<PageOf, Slice<records.Field>>(),
	getField: op<{ id: number }, records.Field | null>(),
	countFieldUses: op<{ id: number }, number>(),
	fieldErrors: op<Question, FieldErrors>(),
	pageWebhooks: op<PageOf, Slice<records.Webhook>>(),
	getWebhook: op<{ id: number }, records.Webhook | null>(),
	stoppedWebhooks: op<void, { id: number; stopped_at: Micros; waiting: number }[]>(),
	pageDeliveries: op<
		queues.DeliveryConditions & PageOf & Pick<DeliveryFilter, 'ordering'>,
		Slice<WebhookDelivery>
	>(),
	getDelivery: op<{ webhook_id: number; id: Uuid }, WebhookDeliveryDetail | null>(),
	pageTemplates: op<PageOf, Slice<records.Template>>(),
	getTemplate: op<{ id: Uuid }, records.Template | null>(),
	findAttachment: op<Seen & { sha256: string; now: Micros }, StoredBytes | null>(),
	getAttachment: op<{ sha256: string }, Uint8Array | null>(),
	pageSenders: op<PageOf, Slice<records.Sender>>(),
	getSender: op<{ id: number }, records.Sender | null>(),
	findSender: op<{ email_key: string }, records.Sender | null>(),

	pageSuppressions: op<
		PageOf & { filter: suppressions.SuppressionFilter; now: Micros },
		Slice<suppressions.Suppression>
	>(),
	sliceSuppressions: op<
		{
			after: { email_key: string; reason: string; list_id: number | null } | null;
			limit: number;
			filter: suppressions.SuppressionFilter;
			now: Micros;
		},
		suppressions.Suppression[]
	>(),
	findSuppression: op<
		{ email_key: string; reason: suppressions.SuppressionReason; list_id: number | null; now: Micros },
		suppressions.Suppression | null
	>(),
	compareSuppressions: op<
		{ rows: readonly suppressions.NewSuppression[]; now: Micros },
		suppressions.SuppressionAck
	>(),

	pageMessages: op<
		PageOf & Seen & { filter: StoredMessageFilter },
		Slice<records.Message> & { last: MessagePlace | null }
	>(),
	sliceMessages: op<
		Seen & { filter: StoredMessageFilter; after: MessagePlace; limit: number },
		{ results: records.Message[]; last: MessagePlace | null }
	>(),
	getMessage: op<
		{ id: Uuid } & Seen,
		{
			message: records.Message;
			attempts: records.DeliveryAttempt[];
			events: records.MessageEvent[];
			reports: records.MessageReport[];
			tracking: records.Tracking;
			rendering: queues.Leased;
			attachments: AttachedFile[];
		} | null
	>(),
	getOldMessage: op<{ id: Uuid }, OldMessage | null>(),
	getSubmission: op<{ id: Uuid }, StoredSubmission | null>(),
	/** Slow, because no index covers the addresses of copies and refused rows. */
	getPerson: op<{ email_key: string }, Person>(),
	/** Returns the newest messages first. `before` is the `next` of the previous slice. */
	slicePersonMessages: op<
		{ email_key: string; since_at: Micros | null; before: number | null; limit: number; now: Micros },
		PersonMessages
	>(),
	countMessages: op<{ scope: MessageScope | null } & Seen, Partial<Record<records.MessageState, number>>>(),
	countWaiting: op<void, Partial<Record<records.MessageState, number>>>(),

	campaignStatus: op<{ id: Uuid; now: Micros } & Seen, campaigns.CampaignStatus | null>(),
	foreseeAudience: op<
		{
			type: 'TRANSACTIONAL' | 'BULK';
			used: string[];
			context: Record<string, string>;
			is_strict: boolean;
			now: Micros;
			audience: NonNullable<OpenCampaign['audience']>;
			list_id: number;
			after: number;
			limit: number;
			time_zone: string;
		},
		campaigns.AudiencePart | null
	>(),
	sliceLeftOut: op<
		{ id: Uuid; after: number; limit: number } & Seen,
		{ results: campaigns.LeftOutPerson[]; next: number | null } | null
	>(),
	pageCampaigns: op<
		Omit<campaigns.CampaignFilter, 'since'> & { since_at?: Micros; now: Micros } & PageOf & Seen,
		Slice<campaigns.Campaign>
	>(),
	sliceCampaignResults: op<
		{ id: Uuid; after: number; limit: number; only: 'findings' | null } & Seen,
		campaigns.CampaignResults | null
	>(),
	sliceImportAddresses: op<{ import: number; after: string; limit: number }, string[]>(),

	foreseeReport: op<ReturnedReport, ReportOutcome>(),
	nextDue: op<{ scope: MessageScope | null }, Micros | null>(),
	/** The earliest time at which a message held by a limit may be sent; `null` if none is held. See `lease`. */
	nextTurn: op<{ scope: MessageScope | null; now: Micros; perSecond?: number }, Micros | null>(),
	holdsOfMessage: op<{ id: Uuid; now: Micros }, queues.LimitHold[]>(),
	limitWaits: op<{ now: Micros }, queues.LimitWait[]>(),
	queuePauses: op<void, queues.QueuePause[]>(),
	revokedLeases: op<{ fences: readonly queues.Fence[] }, Uuid[]>(),
	queueState: op<{ now: Micros }, queues.QueueState>(),
	hasWorker: op<{ now: Micros }, boolean>(),

	reportFigures: op<
		{ from: Day; to: Day; campaign: Uuid | null; tag: string | null; human: boolean },
		ReportFigures
	>(),
	campaignLife: op<{ campaign: Uuid }, CampaignLife | null>(),
	reportDetails: op<{ from: Day; to: Day; campaign: Uuid | null; lists: boolean }, DetailFigures>(),
	linkFigures: op<{ campaign: Uuid }, LinkFigures | null>(),

	getSettings: op<void, Record<string, string>>(),
	clockAhead: op<{ now: Micros }, Micros>(),
	takesWrites: op<void, boolean>(),
	listTokens: op<void, upkeep.StoredToken[]>(),
	findToken: op<{ sha256: string }, upkeep.StoredToken | null>(),
	listDkimKeys: op<void, upkeep.StoredDkimKey[]>(),
	secretCounts: op<void, { key: string | null; secrets: number }[]>(),
	status: op<void, upkeep.StoreStatus>(),
	sizes: op<Record<never, never>, upkeep.Sizes>(),
	checkCounts: op<Record<never, never>, upkeep.CountCheck>(),
	foreseeRetention: op<{ values: Readonly<Record<string, string>>; now: Micros }, upkeep.RetentionForecast>(),
	deletedMessages: op<{ now: Micros }, { before_at: Micros; keep_messages: string } | null>(),
};

const writes = {
	/**
	 * With `unless_named`, returns an existing list of that name with `was_there`. A repeat with the same `key` returns
	 * the list that the first call created, without `was_there`. `key_conflict`: the key belongs to another request.
	 */
	createList: op<
		{ input: inputs.ListInput; now: Micros; unless_named?: true; key?: IdempotencyKey | null },
		(Written<records.List> & { was_there?: true }) | { kind: 'key_conflict' }
	>(),
	patchList: op<{ id: number; patch: Partial<inputs.ListInput> }, Written<records.List>>({
		repeatable: true,
	}),
	patchListDetails: op<{ id: number; patch: Partial<inputs.ListDetailsInput> }, Written<inputs.ListDetails>>({
		repeatable: true,
	}),
	deleteList: op<{ id: number; now: Micros }, boolean>(),
	clearList: op<{ id: number; now: Micros }, number | null>(),

	/** `skip` keeps an existing subscriber; `update` changes it and merges meta. The default returns `refused`. */
	createSubscriber: op<
		{ list_id: number; input: inputs.SubscriberInput; if_exists?: 'skip' | 'update'; now: Micros },
		Written<records.Subscriber>
	>({
		holds: ({ input, if_exists }) =>
			if_exists === 'update' ? changesPeople : [...keepsPeople, alone('address', emailKey(input.email))],
	}),
	patchSubscriber: op<
		{ list_id: number; id: number; patch: SubscriberPatch; now: Micros },
		Written<records.Subscriber>
	>({ repeatable: true, holds: () => changesPeople }),
	deleteSubscriber: op<{ list_id: number; id: number; now: Micros }, boolean>({ holds: () => changesPeople }),
	/**
	 * Deletes a person's data in all lists and messages, and cancels waiting messages. Keeps a keyed hash of the address,
	 * so that the store recognizes the address in later writes and imports.
	 */
	erasePerson: op<{ email_key: string; fresh: { id: number; secret: string }; now: Micros }, Erasure>({
		overwrites: true,
	}),
	liftErasure: op<{ email_key: string }, boolean>(),
	/** A suppression that never expires deactivates subscribers. Rejects erased addresses and missing lists. */
	putSuppressions: op<
		{ rows: readonly suppressions.NewSuppression[]; now: Micros },
		suppressions.SuppressionAck
	>(),
	/** A null `reason` or `list_id` means all. Keeps subscribers inactive. Returns null if nothing matched. */
	removeSuppressions: op<
		{ email_key: string; reason: suppressions.SuppressionReason | null; list_id: number | null; now: Micros },
		suppressions.SuppressionRemoval | null
	>(),

	createField: op<{ input: inputs.FieldInput; now: Micros }, Written<records.Field>>({ prepares: true }),
	/** A new `variable` also renames the key in every subscriber's meta. */
	patchField: op<{ id: number; patch: Partial<inputs.FieldInput> }, Written<records.Field>>({
		repeatable: true,
	}),
	deleteField: op<{ id: number }, boolean>(),

	createWebhook: op<{ input: Required<inputs.WebhookInput>; now: Micros }, Written<records.Webhook>>(),
	patchWebhook: op<{ id: number; patch: Partial<inputs.WebhookInput> }, Written<records.Webhook>>({
		repeatable: true,
	}),
	deleteWebhook: op<{ id: number }, boolean>(),
	/** Leases due deliveries: at most `max` for a webhook in `shares`, at most `each` for any other. */
	leaseDeliveries: op<queues.LeaseDeliveries, queues.DeliveryLease>({
		repeatable: true,
		records: true,
		holds: () => [shares, alone('deliveries')],
	}),
	settleDeliveries: op<{ settlements: readonly queues.DeliverySettlement[] }, queues.DeliverySettled[]>({
		records: true,
		holds: () => [shares, alone('deliveries')],
	}),
	replayDeliveries: op<queues.ReplayDeliveries, queues.Replayed>(),
	ensureWebhookSecret: op<{ fresh: { id: number; secret: string }; now: Micros }, upkeep.StoredKey[]>({
		repeatable: true,
	}),
	rotateWebhookSecret: op<
		{ fresh: { id: number; secret: string }; now: Micros; retire_at: Micros },
		upkeep.StoredKey[]
	>(),

	createTemplate: op<
		{ id: Uuid; input: Required<inputs.TemplateInput>; now: Micros },
		Written<records.Template>
	>(),
	patchTemplate: op<
		{ id: Uuid; patch: Partial<inputs.TemplateInput>; now: Micros },
		Written<records.Template>
	>({
		repeatable: true,
	}),
	deleteTemplate: op<{ id: Uuid }, boolean>(),
	/** Expects checked bytes. Deletes expired uploads too. Returns null if the owner has too many unused uploads. */
	putAttachment: op<{ sha256: string; bytes: Uint8Array; owner?: string; now: Micros }, StoredBytes | null>({
		repeatable: true,
		prepares: true,
	}),
	createSender: op<inputs.SenderInput & { email_key: string; now: Micros }, Written<records.Sender>>(),
	patchSender: op<
		{ id: number; patch: Partial<inputs.SenderInput>; email_key?: string },
		Written<records.Sender>
	>({
		repeatable: true,
	}),
	deleteSender: op<{ id: number }, boolean>(),

	/** `null` removes a setting. A new `time_zone` recomputes the daily figures. */
	putSettings: op<{ values: Readonly<Record<string, string | null>>; now: Micros }, void>({
		repeatable: true,
		wakes: true,
	}),
	/**
	 * Rewrites all secrets, wrapped with the store's first key or as plain text. If other processes run, changes nothing
	 * and returns them, because they may lack the key.
	 */
	rewriteSecrets: op<{ as: 'wrapped' | 'plain'; isTrial: boolean; now: Micros }, OtherProcess[]>({
		repeatable: true,
		overwrites: true,
	}),
	ensureKey: op<upkeep.KeyWanted, upkeep.StoredKey[]>({ repeatable: true }),
	createToken: op<{ sha256: string; name: string; scopes: readonly string[]; now: Micros }, boolean>(),
	revokeToken: op<{ name: string; now: Micros }, boolean>(),
	addDkimKey: op<Omit<upkeep.StoredDkimKey, 'created_at'> & { now: Micros }, boolean>(),
	removeDkimKey: op<{ domain: string; selector: string }, boolean>({ overwrites: true }),
	/**
	 * Prepares a restored copy that no other process uses yet: leased messages become `uncertain`, and the queue pauses.
	 * `waiting` counts messages that a resumed queue would send; `erased` counts people erased since the backup.
	 */
	settleRestored: op<
		{ backup: string; erasures: upkeep.StoredErasures | null; now: Micros },
		{ uncertain: number; waiting: number; erased: number }
	>({ wakes: true }),
	repairCounts: op<Record<never, never>, upkeep.CountCheck>(),

	acceptSubmission: op<Seen & Submission & { key: IdempotencyKey | null }, Acceptance>({
		wakes: true,
		holds: ({ recipients, key }) => [
			...keepsPeople,
			...recipients.map(({ to_key }) => shared('address', to_key)),
			...(key === null ? [] : [alone('key', JSON.stringify([key.scope, key.key]))]),
		],
	}),
	openCampaign: op<OpenCampaign, CampaignOpened>(),
	/**
	 * Stages a message for each active subscriber of a list, except for addresses that the campaign already has. Starts
	 * no new slice after `for_ms`; if absent, the call adds the whole list.
	 */
	addListToCampaign: op<
		{ campaign: Uuid; list_id: number; now: Micros; for_ms?: number } & Seen,
		campaigns.ListAck | null
	>(),
	addPeopleToCampaign: op<ListedPeople, PeopleAck>({ holds: () => changesPeople }),
	/** With `isAgain`, uncertain messages become due. Without it, messages of an interrupted retry become uncertain. */
	retryUncertain: op<{ campaign: Uuid; isAgain: boolean; now: Micros }, void>({ wakes: true }),
	keepCampaignRate: op<{ campaign: Uuid; rate: string }, void>({ repeatable: true }),
	putCampaignBatch: op<
		{
			campaign: Uuid;
			first: number;
			rows: readonly (RecipientRow | RequestedRow)[];
			now: Micros;
		} & Seen,
		CampaignAck
	>({ repeatable: true, holds: () => changesPeople }),
	completeCampaign: op<
		{ campaign: Uuid; position: number } & Seen,
		Exclude<CampaignAck, { kind: 'acknowledged' }> | { kind: 'complete' }
	>(),
	releaseCampaign: op<
		{ campaign: Uuid; expect_count: number; now: Micros } & Seen,
		{ kind: 'released' | 'not_found' | 'canceled' | 'incomplete' } | { kind: 'count_differs'; count: number }
	>({ wakes: true }),
	cancelCampaign: op<{ campaign: Uuid; forget?: boolean; now: Micros } & Seen, CampaignCanceled>(),

	openImport: op<{ id: Uuid; key: string; spec: ImportSpec; now: Micros }, Session | 'conflict' | null>({
		prepares: true,
	}),
	/**
	 * A large batch may take several commits. After an interruption, a repeated batch continues after the last commit,
	 * and its answer covers all rows. Send batches in order. With `expects_new`, inserts without look-ups, so an existing
	 * row fails the batch.
	 */
	putImportBatch: op<
		{
			session: Uuid;
			batch: ImportBatch | CheckedBatch;
			now: Micros;
			expects_new?: boolean | undefined;
		},
		ImportAck
	>({ repeatable: true, holds: () => changesPeople }),
	finishImport: op<{ session: Uuid; now: Micros }, ImportCounts | null>(),
	openRowImport: op<{ key: string; now: Micros }, RowImport>(),
	declareRow: op<{ import: number; row: number; intent: RowIntent }, void>({ waits: () => 'briefly' }),
	acknowledgeRows: op<RowBatch & { import: number }, void>(),
	dropRowImport: op<{ import: number }, void>(),

	changeMessage: op<{ id: Uuid; action: MessageAction; now: Micros } & Seen, MessageChange>({ wakes: true }),
	recordEvents: op<{ events: readonly TrackedEvent[] }, void>({
		records: true,
		holds: ({ events }) => (events.every(isReading) ? [shares] : projectAlone),
		// Do not delay an unsubscription: the person waits for the answer, and must not get more mail meanwhile.
		waits: ({ events }) => (events.every(isReading) ? 'as_opens' : 'not'),
	}),
	/** Records each kind of report once per message. Also updates figures, suppressions and subscribers. */
	recordReport: op<ReturnedReport, ReportOutcome>({ records: true }),
};

const queue = {
	/**
	 * Leases messages that are due or have an expired lease: transactional ones first, then campaigns in turn. Cancels
	 * bulk mail to suppressed addresses. A message over a limit stays in the queue without using an attempt, and other
	 * messages overtake it (`nextTurn`). If the caller loses the answer, the leases expire.
	 */
	lease: op<queues.LeaseCommand, queues.Leased[]>({ repeatable: true }),
	renew: op<{ owner: string; fences: readonly queues.Fence[]; now: Micros; until: Micros }, void>({
		repeatable: true,
		records: true,
		holds: () => [shares],
	}),
	/** `lost_lease`: the worker no longer holds the lease, so the call changes nothing. */
	settle: op<{ settlements: readonly queues.Settlement[]; gathers?: boolean }, ('recorded' | 'lost_lease')[]>(
		{
			records: true,
			holds: ({ settlements }) =>
				settlements.some(({ outcome }) => isBounce(outcome)) ? projectAlone : [shares],
			waits: ({ gathers }) => (gathers ? 'briefly' : 'not'),
		},
	),
	/**
	 * Marks messages before a call to a send API, which cannot be undone. If the lease ends during the call, the message
	 * becomes `uncertain`. With `isCalling` false, removes the mark. With `gathers`, the write may wait for others to
	 * share its commit.
	 */
	setCalling: op<{ fences: readonly queues.Fence[]; isCalling: boolean; gathers?: boolean }, void>({
		repeatable: true,
		records: true,
		holds: () => [shares],
		waits: ({ gathers }) => (gathers ? 'briefly' : 'not'),
	}),
	/**
	 * Marks a message before a worker composes it, because composing may crash the process. A lease that ends before
	 * `endComposing` counts as a crash. The message then waits a minute; the third crash makes it fail.
	 */
	beginComposing: op<queues.Fence, void>({ repeatable: true, records: true, holds: () => [shares] }),
	endComposing: op<queues.Fence, void>({ repeatable: true, records: true, holds: () => [shares] }),
	/**
	 * `manual`: workers lease nothing until somebody resumes the queue. `fault`: other workers wait until `retry_at`. A
	 * repeated pause keeps its first `since`.
	 */
	pause: op<Pick<queues.QueuePause, 'kind' | 'reason' | 'retry_at'> & { now: Micros }, queues.QueuePause>(),
	/** True if a `manual` or `fault` pause ended. Messages of a refused sender become due by `retry_at`. */
	resume: op<{ kinds: readonly queues.QueuePause['kind'][]; retry_at?: Micros }, boolean>({ wakes: true }),
};

/** Parts of other operations. Each part has its own transaction (`slices.ts`). */
const steps = {
	stageSlice: op<Seen & { campaign: Uuid; list_id: number; now: Micros; limit: number }, StagedSlice | null>({
		holds: () => changesPeople,
	}),
	findImportAnswer: op<{ session: Uuid; first: number; ahead: number }, ImportAck | null>({
		repeatable: true,
	}),
	putImportSlices: op<
		{
			session: Uuid;
			slices: readonly { batch: ImportBatch | CheckedBatch; from: number; limit: number }[];
			now: Micros;
			expects_new?: boolean | undefined;
		},
		Ack<ImportCounts>[]
	>({ repeatable: true }),
	dropStaged: op<{ campaign: Uuid; limit: number }, number>({ repeatable: true }),
	cancelCalls: op<
		{ campaign: Uuid; forget?: boolean; now: Micros; after: number; limit: number } & Seen,
		{ kind: 'canceled'; next: number | null } | Exclude<CampaignCanceled, { kind: 'canceled' }>
	>({ repeatable: true }),
	forgetCampaign: op<{ campaign: Uuid }, void>({ repeatable: true }),
	/** One transaction of `lease`. `isCut`: limits held so many messages that the call stopped; more may be due. */
	leaseSlice: op<queues.LeaseCommand, { leased: queues.Leased[]; isCut: boolean }>({
		repeatable: true,
		records: true,
		holds: ({ perSecond, alone }) =>
			perSecond === undefined && alone === undefined ? keepsPeople : projectAlone,
	}),
	dropSubscribers: op<{ list_id: number; limit: number; isFirst: boolean }, number>(),
	dropFieldUses: op<{ id: number; after: number; limit: number }, number | null>({ repeatable: true }),
};

export type Reads = Methods<typeof reads>;
export type Writes = Methods<typeof writes>;
export type Queue = Methods<typeof queue>;

export interface Parts {
	reads: Reads;
	writes: Writes;
	queue: Queue;
}

export type Operations = Reads & Writes & Queue & Methods<typeof steps>;

export type Command<Name extends keyof Operations> = Parameters<Operations[Name]>[0];

const parts = { reads, writes, queue };
const rows: Readonly<Record<string, Row<never, unknown>>> = { ...reads, ...writes, ...queue, ...steps };

export function traitsOf(operation: string): Row<never, unknown> {
	const traits = rows[operation];
	if (traits === undefined) throw new Error(`the store has no operation ${operation}`);
	return traits;
}

export function holdsOf(operation: string, command: unknown): readonly Hold[] {
	return rows[operation]?.holds?.(command as never) ?? projectAlone;
}

export function carryOut(core: object, name: string, command: unknown): unknown {
	const operation: ((command: unknown) => unknown) | undefined = Reflect.get(core, name);
	if (operation === undefined) throw new Error(`the store has no operation ${name}`);
	return operation(command);
}

export type Run = (operation: string, command: unknown, means?: Means) => Promise<unknown>;

export function driverOf<Part extends keyof Parts>(part: Part, run: Run): Parts[Part] {
	const driver: Record<string, (command: unknown, means?: Means) => Promise<unknown>> = {};
	for (const name of Object.keys(parts[part])) driver[name] = (command, means) => run(name, command, means);
	return driver as unknown as Parts[Part];
}
