/**
 * The operations of the store and their properties. Loops build the drivers from this table; the compiler finds missing
 * operations.
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

export interface Hold {
	level: 'project' | 'people' | 'address' | 'key' | 'deliveries';
	of: string;
	isAlone: boolean;
}

interface Traits {
	/**
	 * The operation may run twice, and the second answer is as good. The second time, other operations would answer "not
	 * found" or "duplicate", or count again.
	 */
	repeatable?: true;
	/** Messages may become due, so PostgreSQL notifies the other processes. */
	wakes?: true;
	/** The operation records what happened outside the database, so a signal does not undo it. */
	records?: true;
	/** A dry run rolls the operation back, and repeats it before each later operation. */
	prepares?: true;
	/** The operation deletes data that must not stay in the file, so SQLite then truncates its log. */
	overwrites?: true;
	/** Threads exchange its commands and answers as JSON, in 0.6 to 0.7 of the time of a structured clone. */
	isFrequent?: true;
}

interface Row<C> extends Traits {
	/**
	 * Locks on PostgreSQL until the end of the transaction; absent: the whole project. Operations without conflicting
	 * locks run at the same time. Queries lock the rows of messages that they read (`Dialect.lockRows`).
	 */
	holds?: (command: C) => readonly Hold[];
}

type RowsOf<Part> = {
	readonly [Name in keyof Part]: Part[Name] extends (...given: infer Given) => unknown
		? Row<Given[0]>
		: never;
};

const alone = (level: Hold['level'], of = ''): Hold => ({ level, of, isAlone: true });
const shared = (level: Hold['level'], of = ''): Hold => ({ level, of, isAlone: false });

export const projectAlone: readonly Hold[] = [alone('project')];
const shares = shared('project');
const keepsPeople = [shares, shared('people')];
const changesPeople = [shares, alone('people')];

const readNames = [
	...(['pageLists', 'getList', 'getListDetails', 'pageSubscribers', 'encodeSubscriberPage'] as const),
	...(['getSubscriber', 'sliceSubscribers', 'encodeSubscriberSlice', 'encodeSubscriberTuples'] as const),
	...(['pageFields', 'getField', 'countFieldUses', 'fieldErrors', 'pageWebhooks', 'getWebhook'] as const),
	...(['stoppedWebhooks', 'pageDeliveries', 'getDelivery', 'pageTemplates', 'getTemplate'] as const),
	...(['pageSuppressions', 'sliceSuppressions', 'findSuppression', 'compareSuppressions'] as const),
	...(['findAttachment', 'getAttachment', 'pageSenders', 'getSender', 'findSender'] as const),
	...([
		'pageMessages',
		'sliceMessages',
		'getMessage',
		'getOldMessage',
		'getSubmission',
		'getPerson',
	] as const),
	...(['slicePersonMessages', 'campaignStatus', 'foreseeAudience', 'sliceLeftOut', 'pageCampaigns'] as const),
	...(['sliceCampaignResults', 'countMessages', 'countWaiting', 'sliceImportAddresses'] as const),
	...(['foreseeReport', 'nextDue', 'nextTurn', 'holdsOfMessage', 'limitWaits', 'queuePauses'] as const),
	...(['revokedLeases', 'queueState', 'hasWorker', 'reportFigures', 'campaignLife', 'linkFigures'] as const),
	...(['reportDetails', 'getSettings', 'takesWrites', 'clockAhead', 'listTokens', 'findToken'] as const),
	...(['listDkimKeys', 'status', 'secretCounts', 'checkCounts', 'sizes', 'foreseeRetention'] as const),
	'deletedMessages',
] as const satisfies readonly (keyof Reads)[];

const reads: RowsOf<Omit<Reads, (typeof readNames)[number]>> = {};

const plainNames = [
	...([
		'createList',
		'deleteList',
		'clearList',
		'liftErasure',
		'putSuppressions',
		'removeSuppressions',
	] as const),
	...(['deleteField', 'createWebhook', 'deleteWebhook', 'replayDeliveries', 'rotateWebhookSecret'] as const),
	...(['createTemplate', 'deleteTemplate', 'createSender', 'deleteSender', 'createToken'] as const),
	...(['revokeToken', 'addDkimKey', 'openCampaign', 'addListToCampaign', 'completeCampaign'] as const),
	...(['cancelCampaign', 'finishImport', 'openRowImport', 'declareRow', 'acknowledgeRows'] as const),
	...(['dropRowImport', 'repairCounts'] as const),
] as const satisfies readonly (keyof Writes)[];

const repeatableNames = [
	...(['patchList', 'patchListDetails', 'patchField', 'patchWebhook', 'ensureWebhookSecret'] as const),
	...(['patchTemplate', 'patchSender', 'ensureKey', 'keepCampaignRate'] as const),
] as const satisfies readonly (keyof Writes)[];

const writes: RowsOf<Omit<Writes, (typeof plainNames)[number] | (typeof repeatableNames)[number]>> = {
	createSubscriber: {
		holds: ({ input, if_exists }) =>
			if_exists === 'update' ? changesPeople : [...keepsPeople, alone('address', emailKey(input.email))],
	},
	patchSubscriber: { repeatable: true, holds: () => changesPeople },
	deleteSubscriber: { holds: () => changesPeople },
	erasePerson: { overwrites: true },
	createField: { prepares: true },
	leaseDeliveries: { repeatable: true, records: true, holds: () => [shares, alone('deliveries')] },
	settleDeliveries: { records: true, holds: () => [shares, alone('deliveries')] },
	putAttachment: { repeatable: true, prepares: true },
	putSettings: { repeatable: true, wakes: true },
	rewriteSecrets: { repeatable: true, overwrites: true },
	removeDkimKey: { overwrites: true },
	acceptSubmission: {
		wakes: true,
		holds: ({ recipients, key }) => [
			...keepsPeople,
			...recipients.map(({ to_key }) => shared('address', to_key)),
			...(key === null ? [] : [alone('key', JSON.stringify([key.scope, key.key]))]),
		],
	},
	addPeopleToCampaign: { holds: () => changesPeople },
	retryUncertain: { wakes: true },
	putCampaignBatch: { repeatable: true, holds: () => changesPeople },
	releaseCampaign: { wakes: true },
	openImport: { prepares: true },
	putImportBatch: { repeatable: true, holds: () => changesPeople },
	changeMessage: { wakes: true },
	recordEvents: {
		records: true,
		isFrequent: true,
		holds: ({ events }) => (events.every(isReading) ? [shares] : projectAlone),
	},
	recordReport: { records: true },
	settleRestored: { wakes: true },
};

const queue: RowsOf<Queue> = {
	// A lease whose answer is lost simply expires.
	lease: { repeatable: true, isFrequent: true },
	renew: { repeatable: true, records: true, holds: () => [shares] },
	settle: {
		records: true,
		isFrequent: true,
		holds: ({ settlements }) =>
			settlements.some(({ outcome }) => isBounce(outcome)) ? projectAlone : [shares],
	},
	setCalling: { repeatable: true, records: true, holds: () => [shares] },
	beginComposing: { repeatable: true, records: true, holds: () => [shares] },
	endComposing: { repeatable: true, records: true, holds: () => [shares] },
	pause: {},
	resume: { wakes: true },
};

/** Parts of other operations, each in its own transaction (`slices.ts`). */
const steps: RowsOf<Slices & Emptying & FieldUses> = {
	stageSlice: { holds: () => changesPeople },
	findImportAnswer: { repeatable: true },
	putImportSlices: { repeatable: true },
	dropStaged: { repeatable: true },
	cancelCalls: { repeatable: true },
	forgetCampaign: { repeatable: true },
	leaseSlice: {
		repeatable: true,
		records: true,
		holds: ({ perSecond, alone }) =>
			perSecond === undefined && alone === undefined ? keepsPeople : projectAlone,
	},
	dropSubscribers: {},
	dropFieldUses: { repeatable: true },
};

const each = <T>(names: readonly string[], row: T) => Object.fromEntries(names.map((name) => [name, row]));
const repeatable: Traits = { repeatable: true };

const parts: Readonly<Record<keyof Parts, Readonly<Record<string, Row<never>>>>> = {
	reads: { ...each(readNames, {}), ...reads },
	writes: { ...each(plainNames, {}), ...each(repeatableNames, repeatable), ...writes },
	queue,
};
const rows: Readonly<Record<string, Row<never>>> = { ...parts.reads, ...parts.writes, ...queue, ...steps };

export function traitsOf(operation: string): Traits {
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
