/** The store's operations as they travel between threads. Every name is here once; the compiler misses none. */
import type { OpenOptions } from '../store/open.js';
import type { Queue } from '../store/queue.js';
import type { Reads, Writes } from '../store/store.js';
import { flattenEvents, restoreEvents } from './flat-events.js';
import { type FlatPage, flatten, restore } from './flat-page.js';
import type { Failure } from './thread-errors.js';

/** `thread`: `open` and `close`; the others are the store's own parts. */
export interface Operation {
	id: number;
	part: 'thread' | 'reads' | 'writes' | 'queue';
	method: string;
	command: unknown;
}

export type Answer = { id: number } & (
	| { kind: 'value'; value: unknown }
	| { kind: 'failure'; failure: Failure }
);

/** What a thread opens: the store that writes, or a connection that reads beside it. */
export interface OpenCommand {
	role: 'writer' | 'reader';
	url: string;
	/** The clock stays: a thread has the machine's own. */
	options: Omit<OpenOptions, 'clock'>;
}

/** Runs an operation somewhere else. */
export type Call = (method: string, command: unknown) => Promise<unknown>;

/** The parts of a store whose operations are run by `call`. */
export function remoteReads(call: Call): Reads {
	return {
		...remote<Reads>(readNames, call),
		pageSubscribers: async (command) => {
			// What `flatReads` made of it over there.
			const page = (await call('pageSubscribers', command)) as FlatPage | null;
			return page === null ? null : restore(page);
		},
	};
}

/** Reads as they are answered to `remoteReads`. */
export function flatReads(reads: Reads): Omit<Reads, 'pageSubscribers'> & { pageSubscribers: unknown } {
	return {
		...reads,
		pageSubscribers: async (command: Parameters<Reads['pageSubscribers']>[0]) => {
			const slice = await reads.pageSubscribers(command);
			return slice === null ? null : flatten(slice);
		},
	};
}

/** As `remoteReads`; events go flat, for `flatWrites` over there. */
export function remoteWrites(call: Call): Writes {
	return {
		...remote<Writes>(writeNames, call),
		recordEvents: async ({ events }) => {
			await call('recordEvents', flattenEvents(events));
		},
	};
}

/** Writes that take what `remoteWrites` sends. */
export function flatWrites(writes: Writes): Omit<Writes, 'recordEvents'> & { recordEvents: unknown } {
	return {
		...writes,
		recordEvents: (cells: readonly unknown[]) => writes.recordEvents({ events: restoreEvents(cells) }),
	};
}

/** As `remoteReads`, with nothing made flat. */
export function remoteQueue(call: Call): Queue {
	return remote(queueNames, call);
}

function remote<Part extends object>(names: Readonly<Record<keyof Part, true>>, call: Call): Part {
	const methods = Object.keys(names).map((method) => [method, (command: unknown) => call(method, command)]);
	// Each answer comes from the method of the same name, and a copy between threads keeps its type.
	return Object.fromEntries(methods) as Part;
}

const readNames: Readonly<Record<keyof Reads, true>> = {
	pageLists: true,
	getList: true,
	pageSubscribers: true,
	getSubscriber: true,
	sliceSubscribers: true,
	pageFields: true,
	getField: true,
	countFieldUses: true,
	pageWebhooks: true,
	getWebhook: true,
	stoppedWebhooks: true,
	pageDeliveries: true,
	getDelivery: true,
	pageTemplates: true,
	getTemplate: true,
	pageSuppressions: true,
	sliceSuppressions: true,
	findSuppression: true,
	compareSuppressions: true,
	pageSenders: true,
	findSender: true,
	pageMessages: true,
	getMessage: true,
	getSubmission: true,
	mailingStatus: true,
	pageMailings: true,
	sliceMailingResults: true,
	countMessages: true,
	foreseeReport: true,
	nextDue: true,
	nextTurn: true,
	holdsOfMessage: true,
	limitWaits: true,
	queuePauses: true,
	queueState: true,
	reportFigures: true,
	getSettings: true,
	listTokens: true,
	findToken: true,
	listDkimKeys: true,
	status: true,
};

const writeNames: Readonly<Record<keyof Writes, true>> = {
	createList: true,
	patchList: true,
	deleteList: true,
	clearList: true,
	createSubscriber: true,
	patchSubscriber: true,
	deleteSubscriber: true,
	erasePerson: true,
	liftErasure: true,
	putSuppressions: true,
	removeSuppressions: true,
	createField: true,
	patchField: true,
	deleteField: true,
	createWebhook: true,
	patchWebhook: true,
	deleteWebhook: true,
	leaseDeliveries: true,
	settleDeliveries: true,
	replayDeliveries: true,
	ensureWebhookSecret: true,
	rotateWebhookSecret: true,
	createTemplate: true,
	patchTemplate: true,
	deleteTemplate: true,
	createSender: true,
	deleteSender: true,
	putSettings: true,
	ensureKey: true,
	createToken: true,
	revokeToken: true,
	addDkimKey: true,
	removeDkimKey: true,
	acceptSubmission: true,
	openMailing: true,
	addListToMailing: true,
	putMailingBatch: true,
	completeMailing: true,
	releaseMailing: true,
	cancelMailing: true,
	openImport: true,
	putImportBatch: true,
	finishImport: true,
	changeMessage: true,
	recordEvents: true,
	recordReport: true,
};

const queueNames: Readonly<Record<keyof Queue, true>> = {
	lease: true,
	renew: true,
	settle: true,
	pause: true,
	resume: true,
};
