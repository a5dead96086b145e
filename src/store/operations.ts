/**
 * The store's operations, each once. A loop makes the drivers (in this thread, in another one) from this table. The
 * interfaces define arguments and answers; the compiler finds an operation that is missing here.
 */
import type { Queue } from './queue.js';
import type { Means, Reads, Writes } from './store.js';

/** The parts of a store that have operations. */
export interface Parts {
	reads: Reads;
	writes: Writes;
	queue: Queue;
}

/** Every operation, for files that implement some of them. */
export type Operations = Reads & Writes & Queue;

/** The argument of an operation. */
export type Command<Name extends keyof Operations> = Parameters<Operations[Name]>[0];

const names: { readonly [Part in keyof Parts]: Readonly<Record<keyof Parts[Part], true>> } = {
	reads: {
		pageLists: true,
		getList: true,
		getListDetails: true,
		pageSubscribers: true,
		encodeSubscriberPage: true,
		getSubscriber: true,
		sliceSubscribers: true,
		encodeSubscriberSlice: true,
		encodeSubscriberTuples: true,
		pageFields: true,
		getField: true,
		countFieldUses: true,
		fieldErrors: true,
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
		findAttachment: true,
		getAttachment: true,
		pageSenders: true,
		getSender: true,
		findSender: true,
		pageMessages: true,
		sliceMessages: true,
		getMessage: true,
		getOldMessage: true,
		getSubmission: true,
		getPerson: true,
		slicePersonMessages: true,
		campaignStatus: true,
		foreseeAudience: true,
		sliceLeftOut: true,
		pageCampaigns: true,
		sliceCampaignResults: true,
		countMessages: true,
		countWaiting: true,
		sliceImportAddresses: true,
		foreseeReport: true,
		nextDue: true,
		nextTurn: true,
		holdsOfMessage: true,
		limitWaits: true,
		queuePauses: true,
		revokedLeases: true,
		queueState: true,
		hasWorker: true,
		reportFigures: true,
		campaignLife: true,
		linkFigures: true,
		reportDetails: true,
		getSettings: true,
		takesWrites: true,
		clockAhead: true,
		listTokens: true,
		findToken: true,
		listDkimKeys: true,
		status: true,
		secretCounts: true,
		checkCounts: true,
		sizes: true,
		foreseeRetention: true,
		deletedMessages: true,
	},
	writes: {
		createList: true,
		patchList: true,
		patchListDetails: true,
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
		putAttachment: true,
		createSender: true,
		patchSender: true,
		deleteSender: true,
		putSettings: true,
		ensureKey: true,
		rewriteSecrets: true,
		createToken: true,
		revokeToken: true,
		addDkimKey: true,
		removeDkimKey: true,
		acceptSubmission: true,
		openCampaign: true,
		addListToCampaign: true,
		addPeopleToCampaign: true,
		retryUncertain: true,
		keepCampaignRate: true,
		putCampaignBatch: true,
		completeCampaign: true,
		releaseCampaign: true,
		cancelCampaign: true,
		openImport: true,
		putImportBatch: true,
		finishImport: true,
		openRowImport: true,
		declareRow: true,
		acknowledgeRows: true,
		dropRowImport: true,
		changeMessage: true,
		recordEvents: true,
		recordReport: true,
		settleRestored: true,
		repairCounts: true,
	},
	queue: {
		lease: true,
		renew: true,
		settle: true,
		setCalling: true,
		beginComposing: true,
		endComposing: true,
		pause: true,
		resume: true,
	},
};

/** Carries out an operation; returns what its interface declares for this name. */
export type Run = (operation: string, command: unknown, means?: Means) => Promise<unknown>;

/** A part of a store whose operations are carried out by `run`. */
export function driverOf<Part extends keyof Parts>(part: Part, run: Run): Parts[Part] {
	const operations = Object.keys(names[part]).map((name) => [
		name,
		(command: unknown, means?: Means) => run(name, command, means),
	]);
	// Each answer is that of the operation of the same name.
	return Object.fromEntries(operations) as Parts[Part];
}
