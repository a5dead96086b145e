/**
 * The operations of the store with what drivers know of them. Loops make the drivers from this table; the compiler
 * finds an operation that is missing.
 */
import { emailKey } from '../api/address.js';
import { isBounce, isReading } from '../engine/rules/outcomes.js';
import type { Slices } from './core/campaigns/rows.js';
import type { FieldUses } from './core/fields.js';
import type { Emptying } from './core/lists.js';
import type { Queue } from './queue.js';
import type { Means, Reads, Writes } from './store.js';

export interface Parts {
	reads: Reads;
	writes: Writes;
	queue: Queue;
}

export type Operations = Reads & Writes & Queue;

export type Command<Name extends keyof Operations> = Parameters<Operations[Name]>[0];

type Steps = Slices & Emptying & FieldUses;

export interface Hold {
	level: 'project' | 'people' | 'address' | 'key' | 'deliveries';
	of: string;
	isAlone: boolean;
}

interface Traits {
	kind: 'read' | 'write' | 'queue' | 'step';
	/**
	 * A second run does no harm, and its answer serves the caller as well. Without it a second run would answer "not
	 * found" or "duplicate" because of the first, or count twice.
	 */
	repeatable?: true;
	/** Messages may be ready afterwards. */
	wakes?: true;
	/** It records what happened outside the database, so no signal undoes it. */
	records?: true;
	/** A trial, which undoes it, repeats it before each later operation. */
	prepares?: true;
	/** Nothing that it deletes may stay in the file. */
	overwrites?: true;
}

interface Row<Kind extends Traits['kind'], C> extends Traits {
	kind: Kind;
	/**
	 * Locks on PostgreSQL until the end of the transaction; absent: the project alone. Operations that hold nothing
	 * against each other run side by side. Rows of messages are locked where they are read (`Dialect.lockRows`).
	 */
	holds?: (command: C) => readonly Hold[];
}

type RowsOf<Kind extends Traits['kind'], Part> = {
	readonly [Name in keyof Part]: Part[Name] extends (...given: infer Given) => unknown
		? Row<Kind, Given[0]>
		: never;
};

const alone = (level: Hold['level'], of = ''): Hold => ({ level, of, isAlone: true });
const shared = (level: Hold['level'], of = ''): Hold => ({ level, of, isAlone: false });

export const projectAlone: readonly Hold[] = [alone('project')];
const shares = shared('project');
const keepsPeople = [shares, shared('people')];
const changesPeople = [shares, alone('people')];

const read = { kind: 'read' } as const;
const write = { kind: 'write' } as const;
const again = { kind: 'write', repeatable: true } as const;

const table: RowsOf<'read', Reads> &
	RowsOf<'write', Writes> &
	RowsOf<'queue', Queue> &
	RowsOf<'step', Steps> = {
	pageLists: read,
	getList: read,
	getListDetails: read,
	pageSubscribers: read,
	encodeSubscriberPage: read,
	getSubscriber: read,
	sliceSubscribers: read,
	encodeSubscriberSlice: read,
	encodeSubscriberTuples: read,
	pageFields: read,
	getField: read,
	countFieldUses: read,
	fieldErrors: read,
	pageWebhooks: read,
	getWebhook: read,
	stoppedWebhooks: read,
	pageDeliveries: read,
	getDelivery: read,
	pageTemplates: read,
	getTemplate: read,
	pageSuppressions: read,
	sliceSuppressions: read,
	findSuppression: read,
	compareSuppressions: read,
	findAttachment: read,
	getAttachment: read,
	pageSenders: read,
	getSender: read,
	findSender: read,
	pageMessages: read,
	sliceMessages: read,
	getMessage: read,
	getOldMessage: read,
	getSubmission: read,
	getPerson: read,
	slicePersonMessages: read,
	campaignStatus: read,
	foreseeAudience: read,
	sliceLeftOut: read,
	pageCampaigns: read,
	sliceCampaignResults: read,
	countMessages: read,
	countWaiting: read,
	sliceImportAddresses: read,
	foreseeReport: read,
	nextDue: read,
	nextTurn: read,
	holdsOfMessage: read,
	limitWaits: read,
	queuePauses: read,
	revokedLeases: read,
	queueState: read,
	hasWorker: read,
	reportFigures: read,
	campaignLife: read,
	linkFigures: read,
	reportDetails: read,
	getSettings: read,
	takesWrites: read,
	clockAhead: read,
	listTokens: read,
	findToken: read,
	listDkimKeys: read,
	status: read,
	secretCounts: read,
	checkCounts: read,
	sizes: read,
	foreseeRetention: read,
	deletedMessages: read,

	createList: write,
	patchList: again,
	patchListDetails: again,
	deleteList: write,
	clearList: write,
	createSubscriber: {
		kind: 'write',
		holds: ({ input, if_exists }) =>
			if_exists === 'update' ? changesPeople : [...keepsPeople, alone('address', emailKey(input.email))],
	},
	patchSubscriber: { kind: 'write', repeatable: true, holds: () => changesPeople },
	deleteSubscriber: { kind: 'write', holds: () => changesPeople },
	erasePerson: { kind: 'write', overwrites: true },
	liftErasure: write,
	putSuppressions: write,
	removeSuppressions: write,
	createField: { kind: 'write', prepares: true },
	patchField: again,
	deleteField: write,
	createWebhook: write,
	patchWebhook: again,
	deleteWebhook: write,
	leaseDeliveries: {
		kind: 'write',
		repeatable: true,
		records: true,
		holds: () => [shares, alone('deliveries')],
	},
	settleDeliveries: { kind: 'write', records: true, holds: () => [shares, alone('deliveries')] },
	replayDeliveries: write,
	ensureWebhookSecret: again,
	rotateWebhookSecret: write,
	createTemplate: write,
	patchTemplate: again,
	deleteTemplate: write,
	putAttachment: { kind: 'write', repeatable: true, prepares: true },
	createSender: write,
	patchSender: again,
	deleteSender: write,
	putSettings: { kind: 'write', repeatable: true, wakes: true },
	ensureKey: again,
	rewriteSecrets: { kind: 'write', repeatable: true, overwrites: true },
	createToken: write,
	revokeToken: write,
	addDkimKey: write,
	removeDkimKey: { kind: 'write', overwrites: true },
	acceptSubmission: {
		kind: 'write',
		wakes: true,
		holds: ({ recipients, key }) => [
			...keepsPeople,
			...recipients.map(({ to_key }) => shared('address', to_key)),
			...(key === null ? [] : [alone('key', JSON.stringify([key.scope, key.key]))]),
		],
	},
	openCampaign: write,
	addListToCampaign: write,
	addPeopleToCampaign: { kind: 'write', holds: () => changesPeople },
	retryUncertain: { kind: 'write', wakes: true },
	keepCampaignRate: again,
	putCampaignBatch: { kind: 'write', repeatable: true, holds: () => changesPeople },
	completeCampaign: write,
	releaseCampaign: { kind: 'write', wakes: true },
	cancelCampaign: write,
	openImport: { kind: 'write', prepares: true },
	putImportBatch: { kind: 'write', repeatable: true, holds: () => changesPeople },
	finishImport: write,
	openRowImport: write,
	declareRow: write,
	acknowledgeRows: write,
	dropRowImport: write,
	changeMessage: { kind: 'write', wakes: true },
	recordEvents: {
		kind: 'write',
		records: true,
		holds: ({ events }) => (events.every(isReading) ? [shares] : projectAlone),
	},
	recordReport: { kind: 'write', records: true },
	settleRestored: { kind: 'write', wakes: true },
	repairCounts: write,

	// A lease whose answer is lost ends by itself.
	lease: { kind: 'queue', repeatable: true },
	renew: { kind: 'queue', repeatable: true, records: true, holds: () => [shares] },
	settle: {
		kind: 'queue',
		records: true,
		holds: ({ settlements }) =>
			settlements.some(({ outcome }) => isBounce(outcome)) ? projectAlone : [shares],
	},
	setCalling: { kind: 'queue', repeatable: true, records: true, holds: () => [shares] },
	beginComposing: { kind: 'queue', repeatable: true, records: true, holds: () => [shares] },
	endComposing: { kind: 'queue', repeatable: true, records: true, holds: () => [shares] },
	pause: { kind: 'queue' },
	resume: { kind: 'queue', wakes: true },

	// Parts of other operations, each in its own transaction (`slices.ts`).
	stageSlice: { kind: 'step', holds: () => changesPeople },
	findImportAnswer: { kind: 'step', repeatable: true },
	putImportSlices: { kind: 'step', repeatable: true },
	dropStaged: { kind: 'step', repeatable: true },
	cancelCalls: { kind: 'step', repeatable: true },
	forgetCampaign: { kind: 'step', repeatable: true },
	leaseSlice: {
		kind: 'step',
		repeatable: true,
		records: true,
		holds: ({ perSecond, alone }) =>
			perSecond === undefined && alone === undefined ? keepsPeople : projectAlone,
	},
	dropSubscribers: { kind: 'step' },
	dropFieldUses: { kind: 'step', repeatable: true },
};

const rows: Readonly<Record<string, Traits & { holds?: (command: never) => readonly Hold[] }>> = table;

export function traitsOf(operation: string): Traits {
	const traits = rows[operation];
	if (traits === undefined) throw new Error(`the store has no operation ${operation}`);
	return traits;
}

export function holdsOf(operation: string, command: unknown): readonly Hold[] {
	return rows[operation]?.holds?.(command as never) ?? projectAlone;
}

export type Run = (operation: string, command: unknown, means?: Means) => Promise<unknown>;

const kinds = { reads: 'read', writes: 'write', queue: 'queue' } as const;

export function driverOf<Part extends keyof Parts>(part: Part, run: Run): Parts[Part] {
	const driver: Record<string, (command: unknown, means?: Means) => Promise<unknown>> = {};
	for (const [name, { kind }] of Object.entries(rows))
		if (kind === kinds[part]) driver[name] = (command, means) => run(name, command, means);
	return driver as unknown as Parts[Part];
}
