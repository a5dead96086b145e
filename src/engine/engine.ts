import type { Api } from '../api/api.js';
import type { Capabilities, Extensions } from '../api/capabilities.js';
import type { EncodedReads } from '../api/exports.js';
import type { SendRequest } from '../api/inputs.js';
import { createAudiences } from './audiences.js';
import { createCampaigns } from './campaigns.js';
import { createAttachments } from './contents.js';
import type { EngineContext } from './context.js';
import { createEncodedReads, createExports, createTuples } from './exports.js';
import { createFields, createFieldsPlus } from './fields.js';
import { createImports } from './imports.js';
import { createLists, createListsPlus } from './lists.js';
import { createForeseeSend, createMessages, createSend } from './messages.js';
import { createErasures, createPeople } from './people.js';
import { createReport, createReports } from './reports.js';
import { createSenders } from './senders.js';
import { createSubscribers, createSubscribersPlus } from './subscribers.js';
import { createSuppressions } from './suppressions.js';
import { createTemplates } from './templates.js';
import { createDeliveries, createWebhooks } from './webhooks.js';

export interface Engine extends Api {
	readonly ext: Extensions;
	readonly encoded: EncodedReads;
	foreseeSend(request: SendRequest): Promise<void>;
}

export function createEngine(context: EngineContext): Engine {
	const ext: Extensions = {
		lists: createListsPlus(context),
		imports: createImports(context),
		campaigns: createCampaigns({ ...context, courier: 'smtp' }),
		messages: createMessages(context),
		templates: createTemplates(context),
		reports: createReports(context),
		subscribers: createSubscribersPlus(context),
		fields: createFieldsPlus(context),
		erasures: createErasures(context),
		exports: createExports(context),
		tuples: createTuples(context),
		deliveries: createDeliveries(context),
		suppressions: createSuppressions(context),
		people: createPeople(context),
		audiences: createAudiences(context),
		attachments: createAttachments(context),
	};
	const capabilities: Capabilities = { service: 'mailctl', idempotentSend: true, ext };
	return {
		ext,
		encoded: createEncodedReads(context),
		lists: createLists(context),
		fields: createFields(context),
		webhooks: createWebhooks(context),
		senders: createSenders(context),
		subscribers: (listId) => createSubscribers(context, listId),
		send: createSend(context),
		events: async (message, call) => {
			const { events = [] } = await ext.messages.get(message, call);
			return events.map(({ time, link, ...event }) => ({ ...event, date: time, url: link }));
		},
		foreseeSend: createForeseeSend(context),
		report: (query) => createReport(context, query),
		capabilities: async () => capabilities,
		close: () => context.store.close(),
	};
}
