/**
 * Every operation of the store as a synchronous function of a plain command. Whoever runs it decides about
 * transactions: inline behind the writer, or behind a thread that dispatches `{method, command}`.
 */
import type { Queue } from '../queue.js';
import type { Reads, Writes } from '../store.js';
import { createBatchRows } from './batch-rows.js';
import { createBounces } from './bounces.js';
import { createDeliveries } from './deliveries.js';
import { createDkimKeys } from './dkim.js';
import { createErasures } from './erasure.js';
import { createEvents } from './events.js';
import { createFields } from './fields.js';
import { createFigures } from './figures.js';
import { createImports } from './imports.js';
import { createLimitHolders } from './limit-holders.js';
import { createLimitTurns } from './limit-turns.js';
import { createLists } from './lists.js';
import type { Slices } from './mailing-rows.js';
import { createMailings } from './mailings.js';
import { createMessageActions } from './message-actions.js';
import { createMessages } from './messages.js';
import { createNotifications } from './notifications.js';
import { createQueue } from './queue.js';
import { createQueuePauses } from './queue-pauses.js';
import { createQueueState } from './queue-state.js';
import { createSenders } from './senders.js';
import { createSettings } from './settings.js';
import type { Sql } from './sql.js';
import { createSubmissions } from './submissions.js';
import { createSubscribers } from './subscribers.js';
import { createSuppressions } from './suppression-records.js';
import type { Sync } from './sync.js';
import { createTemplates } from './templates.js';
import { createTokens } from './tokens.js';
import { createWaking, type Waking } from './wake-held.js';
import { createWebhookSecrets } from './webhook-secrets.js';
import { createWebhooks } from './webhooks.js';

export interface Core extends Sync<Reads>, Sync<Writes>, Sync<Queue>, Slices, Waking {
	/** Work on a command that needs no transaction; the operation itself then finds it done. How many rows it has. */
	prepareBatch(command: Parameters<Sync<Writes>['putImportBatch']>[0]): number;
	/** The last lease was busy with messages that limits hold back: there may be others that are due. */
	wasLeaseCut(): boolean;
}

/**
 * One for a connection, which its owner closes. Begins no transaction: writes need one around them, reads a snapshot.
 */
export function createCore(sql: Sql): Core {
	const batchRows = createBatchRows();
	return {
		...createLists(sql),
		...createSubscribers(sql),
		...createErasures(sql),
		...createSuppressions(sql),
		...createFields(sql),
		...createWebhooks(sql),
		...createDeliveries(sql),
		...createNotifications(sql),
		...createWebhookSecrets(sql),
		...createTemplates(sql),
		...createSenders(sql),
		...createSettings(sql),
		...createTokens(sql),
		...createDkimKeys(sql),
		...createSubmissions(sql),
		...createMailings(sql),
		...createImports(sql, batchRows),
		...createMessages(sql),
		...createEvents(sql),
		...createBounces(sql),
		...createFigures(sql),
		...createQueue(sql),
		...createLimitTurns(sql),
		...createLimitHolders(sql),
		...createWaking(sql),
		...createQueuePauses(sql),
		...createQueueState(sql),
		...createMessageActions(sql),
		prepareBatch: ({ batch }) => batchRows.prepare(batch),
	};
}
