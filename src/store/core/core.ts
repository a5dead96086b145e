import type { Command, Operations } from '../operations.js';
import { createAttachments } from './attachments.js';
import { createEvents } from './bounces.js';
import { createCampaigns } from './campaigns/campaigns.js';
import type { Slices } from './campaigns/rows.js';
import { createCompositions } from './compositions.js';
import { createErasures } from './erasures.js';
import { createFields, type FieldUses } from './fields.js';
import { createFigures } from './figures/daily.js';
import { createReportDetails } from './figures/report.js';
import { BatchRows } from './imports/batch-rows.js';
import { createImports } from './imports/imports.js';
import { createRowImports } from './imports/row-imports.js';
import { createKeys } from './keys.js';
import { createLimitHolders } from './limits/holders.js';
import { createLists, type Emptying } from './lists.js';
import { createMaintenance } from './maintenance.js';
import { createMessageActions } from './messages/actions.js';
import { createMessages } from './messages/messages.js';
import { createPeople } from './people.js';
import { createQueue } from './queue.js';
import { createQueueState } from './queue-state.js';
import { createOldMessages } from './retention/old-messages.js';
import { createProvenTime } from './retention/proven-time.js';
import { createRoom } from './retention/room.js';
import { createSenders } from './senders.js';
import { createSettings } from './settings.js';
import { createSettling } from './settle.js';
import type { Sql } from './sql.js';
import { createSubmissions } from './submissions.js';
import { createSubscribers } from './subscribers.js';
import { createSuppressions } from './suppression-records.js';
import { createTemplates } from './templates.js';
import { createDeliveries } from './webhooks/deliveries.js';
import { createNotifications } from './webhooks/notifications.js';
import { createWebhooks } from './webhooks/webhooks.js';

export interface Core extends Omit<Operations, 'addListToCampaign' | 'lease'>, Slices, Emptying, FieldUses {
	prepareBatch(command: Command<'putImportBatch'>): number;
}

export function createCore(sql: Sql, { isTrial = false }: { isTrial?: boolean } = {}): Core {
	const batchRows = new BatchRows();
	return {
		...createLists(sql),
		...createSubscribers(sql),
		...createErasures(sql),
		...createSuppressions(sql),
		...createFields(sql),
		...createWebhooks(sql),
		...createDeliveries(sql),
		...createNotifications(sql),
		...createTemplates(sql),
		...createAttachments(sql),
		...createSenders(sql),
		...createSettings(sql),
		...createProvenTime(sql),
		...createKeys(sql),
		...createSubmissions(sql),
		...createCampaigns(sql),
		...createImports(sql, { batchRows, isTrial }),
		...createRowImports(sql),
		...createMessages(sql),
		...createOldMessages(sql),
		...createPeople(sql),
		...createEvents(sql),
		...createFigures(sql),
		...createReportDetails(sql),
		...createQueue(sql),
		...createSettling(sql),
		...createMaintenance(sql),
		...createRoom(sql),
		...createCompositions(sql),
		...createLimitHolders(sql),
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
