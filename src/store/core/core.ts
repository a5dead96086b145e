/**
 * Every operation of the store as a synchronous function of a plain command. The caller decides about transactions:
 * inline behind the writer, or behind a thread that dispatches `{method, command}`.
 */
import type { Command, Operations } from '../operations.js';
import { createAttachments } from './attachments.js';
import { createBounces } from './bounces.js';
import { createCampaigns } from './campaigns/campaigns.js';
import type { Slices } from './campaigns/rows.js';
import { createCompositions } from './compositions.js';
import { createErasures } from './erasures.js';
import { createEvents } from './events.js';
import { createFieldErrors } from './field-errors.js';
import { createFields, type FieldUses } from './fields.js';
import { createFigures } from './figures/daily.js';
import { createReportDetails } from './figures/report.js';
import { createBatchRows } from './imports/batch-rows.js';
import { createImports } from './imports/imports.js';
import { createRowImports } from './imports/row-imports.js';
import { createDkimKeys, createKeyring, createTokens } from './keys.js';
import { createLimitHolders } from './limits/holders.js';
import { createLimitTurns } from './limits/limits.js';
import { createLists, type Emptying } from './lists.js';
import { createMaintenance } from './maintenance.js';
import { createMessageActions } from './messages/actions.js';
import { createMessages } from './messages/messages.js';
import { createPeople } from './people.js';
import { createQueue } from './queue.js';
import { createQueuePauses, createQueueState } from './queue-state.js';
import { createOldMessages } from './retention/old-messages.js';
import { createProvenTime } from './retention/proven-time.js';
import { createRoom } from './retention/room.js';
import { createSenders } from './senders.js';
import { createSettings } from './settings.js';
import { createCalls } from './settle.js';
import type { Sql } from './sql.js';
import { createSubmissions } from './submissions.js';
import { createSubscribers } from './subscribers.js';
import { createSuppressions } from './suppression-records.js';
import { createTemplates } from './templates.js';
import { createDeliveries } from './webhooks/deliveries.js';
import { createNotifications } from './webhooks/notifications.js';
import { createWebhookSecrets, createWebhooks } from './webhooks/webhooks.js';

export interface Core extends Operations, Slices, Emptying, FieldUses {
	prepareBatch(command: Command<'putImportBatch'>): number;
}

export function createCore(sql: Sql, { isTrial = false }: { isTrial?: boolean } = {}): Core {
	const batchRows = createBatchRows();
	return {
		...createLists(sql),
		...createSubscribers(sql),
		...createErasures(sql),
		...createSuppressions(sql),
		...createFieldErrors(sql),
		...createFields(sql),
		...createWebhooks(sql),
		...createDeliveries(sql),
		...createNotifications(sql),
		...createWebhookSecrets(sql),
		...createTemplates(sql),
		...createAttachments(sql),
		...createSenders(sql),
		...createSettings(sql),
		...createProvenTime(sql),
		...createKeyring(sql),
		...createTokens(sql),
		...createDkimKeys(sql),
		...createSubmissions(sql),
		...createCampaigns(sql),
		...createImports(sql, { batchRows, isTrial }),
		...createRowImports(sql),
		...createMessages(sql),
		...createOldMessages(sql),
		...createPeople(sql),
		...createEvents(sql),
		...createBounces(sql),
		...createFigures(sql),
		...createReportDetails(sql),
		...createQueue(sql),
		...createCalls(sql),
		...createMaintenance(sql),
		...createRoom(sql),
		...createCompositions(sql),
		...createLimitTurns(sql),
		...createLimitHolders(sql),
		...createQueuePauses(sql),
		...createQueueState(sql),
		...createMessageActions(sql),
		prepareBatch: ({ batch }) => batchRows.prepare(batch),
	};
}

export function carryOut(core: Core, name: string, command: unknown): unknown {
	const operation: ((command: unknown) => unknown) | undefined = Reflect.get(core, name);
	if (operation === undefined) throw new Error(`the store has no operation ${name}`);
	return operation(command);
}
