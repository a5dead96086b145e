/** The local `Api`: the service document's operations, and ours, on a store. */
import type { Api } from '../api/api.js';
import type { Capabilities, Extensions } from '../api/capabilities.js';
import type { EngineContext } from './context.js';
import { createDeliveries } from './deliveries.js';
import { createErasures } from './erasures.js';
import { createExports } from './exports.js';
import { createFields, createFieldsPlus } from './fields.js';
import { createImports } from './imports.js';
import { createLists } from './lists.js';
import { createMailings } from './mailings.js';
import { createMessages, createSend } from './messages.js';
import { createReport } from './reports.js';
import { createSenders } from './senders.js';
import { createSubscribers, createSubscribersPlus } from './subscribers.js';
import { createSuppressions } from './suppressions.js';
import { createTemplates } from './templates.js';
import { createWebhooks } from './webhooks.js';

/** An `Api` that has every extension, which spares those who own the database the asking. */
export interface Engine extends Api {
	readonly ext: Extensions;
}

/** Assembles the engine. `close` closes the store. */
export function createEngine(context: EngineContext): Engine {
	const ext: Extensions = {
		imports: createImports(context),
		mailings: createMailings(context),
		messages: createMessages(context),
		templates: createTemplates(context),
		senders: createSenders(context),
		reports: { report: (query) => createReport(context, query) },
		subscribers: createSubscribersPlus(context),
		fields: createFieldsPlus(context),
		erasures: createErasures(context),
		exports: createExports(context),
		deliveries: createDeliveries(context),
		suppressions: createSuppressions(context),
	};
	const capabilities: Capabilities = { service: 'mailctl', idempotentSend: true, ext };
	return {
		ext,
		lists: createLists(context),
		fields: createFields(context),
		webhooks: createWebhooks(context),
		subscribers: (listId) => createSubscribers(context, listId),
		send: createSend(context),
		report: ({ date_from, date_to, campaign_unique_id, event_types }) =>
			createReport(context, {
				...(date_from !== undefined && { date_from }),
				...(date_to !== undefined && { date_to }),
				...(campaign_unique_id !== undefined && { campaign_unique_id }),
				...(event_types !== undefined && { event_types }),
			}),
		capabilities: async () => capabilities,
		close: () => context.store.close(),
	};
}
