/** Reads of a connection, each in a snapshot of its own; and a connection that does nothing else. */
import type Database from 'better-sqlite3';
import type { Reads } from '../store.js';
import { openConnection } from './connection.js';
import { type Core, createCore } from './core.js';
import { endsTransaction, isBusy, translateFailure } from './failures.js';
import { createSql } from './sql.js';

/** Reads and nothing else; sees what was committed before each of them. */
export interface Reader {
	readonly reads: Reads;
	close(): Promise<void>;
}

/** SQLite's own wait for a lock is a synchronous sleep; in the log, readers hardly ever wait for anybody. */
const busyTimeoutMs = 1_000;

/** A read-only connection to a database that is there and migrated. Throws `DatabaseMissing` and `StoreError`. */
export function openSqliteReader({ path }: { path: string }): Reader {
	const db = openConnection({ path, mode: 'existing', role: 'reader', busyTimeoutMs });
	return {
		reads: createReads({ db, path, core: createCore(createSql(db)) }),
		close: async () => {
			db.close();
		},
	};
}

interface ReadingConnection {
	db: Database.Database;
	path: string;
	core: Core;
}

/** The core's reads as promises. */
export function createReads(connection: ReadingConnection): Reads {
	const { core } = connection;
	const read =
		<C extends unknown[], R>(operation: (...command: C) => R) =>
		async (...command: C): Promise<R> =>
			inSnapshot(connection, () => operation(...command));
	return {
		pageLists: read(core.pageLists),
		getList: read(core.getList),
		pageSubscribers: read(core.pageSubscribers),
		getSubscriber: read(core.getSubscriber),
		sliceSubscribers: read(core.sliceSubscribers),
		pageFields: read(core.pageFields),
		getField: read(core.getField),
		countFieldUses: read(core.countFieldUses),
		pageWebhooks: read(core.pageWebhooks),
		getWebhook: read(core.getWebhook),
		stoppedWebhooks: read(core.stoppedWebhooks),
		pageDeliveries: read(core.pageDeliveries),
		getDelivery: read(core.getDelivery),
		pageTemplates: read(core.pageTemplates),
		getTemplate: read(core.getTemplate),
		pageSuppressions: read(core.pageSuppressions),
		sliceSuppressions: read(core.sliceSuppressions),
		findSuppression: read(core.findSuppression),
		compareSuppressions: read(core.compareSuppressions),
		pageSenders: read(core.pageSenders),
		findSender: read(core.findSender),
		pageMessages: read(core.pageMessages),
		getMessage: read(core.getMessage),
		getSubmission: read(core.getSubmission),
		mailingStatus: read(core.mailingStatus),
		pageMailings: read(core.pageMailings),
		sliceMailingResults: read(core.sliceMailingResults),
		countMessages: read(core.countMessages),
		foreseeReport: read(core.foreseeReport),
		nextDue: read(core.nextDue),
		nextTurn: read(core.nextTurn),
		holdsOfMessage: read(core.holdsOfMessage),
		limitWaits: read(core.limitWaits),
		queuePauses: read(core.queuePauses),
		queueState: read(core.queueState),
		reportFigures: read(core.reportFigures),
		getSettings: read(core.getSettings),
		listTokens: read(core.listTokens),
		findToken: read(core.findToken),
		listDkimKeys: read(core.listDkimKeys),
		status: read(core.status),
	};
}

/** Several statements of one read see one state, whatever other processes commit between them. */
function inSnapshot<R>({ db, path }: ReadingConnection, read: () => R): R {
	try {
		return db.transaction(read).deferred();
	} catch (error) {
		throw isBusy(error) || endsTransaction(error) ? translateFailure(error, path) : error;
	}
}
