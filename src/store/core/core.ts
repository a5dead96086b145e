import type { Operations } from '../operations.js';
import { createAttachments } from './attachments.js';
import { createCompositions } from './attempts.js';
import { createBounces } from './bounces.js';
import { createCampaigns } from './campaigns/campaigns.js';
import { createForecasts } from './campaigns/lists.js';
import { createCampaignResults } from './campaigns/results.js';
import { createRoom } from './disk-usage.js';
import { createFields } from './fields.js';
import { createReports } from './figures/report.js';
import { type BatchPreparing, createImports, createRowImports } from './imports/imports.js';
import { createKeys } from './keys.js';
import { createLists } from './lists.js';
import { createMaintenance } from './maintenance.js';
import { createMessageActions } from './messages/actions.js';
import { createMessages } from './messages/messages.js';
import { createNotifications } from './notifications.js';
import { createPeople } from './people.js';
import { createQueue } from './queue.js';
import { createQueueState } from './queue-state.js';
import { createOldMessages } from './retention.js';
import { createSenders } from './senders.js';
import { createSettings } from './settings.js';
import { createSettling } from './settle.js';
import type { Sql } from './sql.js';
import { createSubmissions } from './submissions.js';
import { createSubscribers } from './subscribers.js';
import { createSuppressions } from './suppression-records.js';
import { createTemplates } from './templates.js';
import { createWebhooks } from './webhooks.js';

export interface Core extends Omit<Operations, 'addListToCampaign' | 'lease'>, BatchPreparing {}

export function createCore(sql: Sql, { isTrial = false }: { isTrial?: boolean } = {}): Core {
	return {
		...createLists(sql),
		...createSubscribers(sql),
		...createSuppressions(sql),
		...createFields(sql),
		...createWebhooks(sql),
		...createNotifications(sql),
		...createTemplates(sql),
		...createAttachments(sql),
		...createSenders(sql),
		...createSettings(sql),
		...createKeys(sql),
		...createSubmissions(sql),
		...createCampaigns(sql),
		...createForecasts(sql),
		...createCampaignResults(sql),
		...createImports(sql, isTrial),
		...createRowImports(sql),
		...createMessages(sql),
		...createOldMessages(sql),
		...createPeople(sql),
		...createBounces(sql),
		...createReports(sql),
		...createQueue(sql),
		...createSettling(sql),
		...createMaintenance(sql),
		...createRoom(sql),
		...createCompositions(sql),
		...createQueueState(sql),
		...createMessageActions(sql),
	};
}
