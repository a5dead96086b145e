/** The request and response bodies of each operation, as schemas: the validators' own, and the records. */
import { fieldFields } from '../../../api/fields.js';
import { listDetailsFields, listFields } from '../../../api/lists.js';
import { campaignFields, requestsFields, sendFields } from '../../../api/messages.js';
import type { JsonSchema } from '../../../api/schema/field.js';
import { senderFields } from '../../../api/senders.js';
import { subscriberFields } from '../../../api/subscribers.js';
import { removalFields, suppressionFields } from '../../../api/suppressions.js';
import { templateFields } from '../../../api/templates.js';
import { webhookFields } from '../../../api/webhooks.js';
import type { Operation } from '../../routes.js';
import {
	addBody,
	campaignOpening,
	completeBody,
	erasureBody,
	importBatch,
	importSpec,
	mergeBody,
	planBody,
	recipientBatch,
	releaseBody,
	replayBody,
	requestBatch,
	suppressionRows,
} from '../inputs.js';
import { pageOf, ref, text } from './shapes.js';

/** Name → schema of every body. */
export const inputSchemas: Readonly<Record<string, JsonSchema>> = {
	ListInput: listFields.jsonSchema(),
	ListPatch: listFields.jsonSchema('patch'),
	ListDetailsPatch: listDetailsFields.jsonSchema('patch'),
	SubscriberInput: subscriberFields.jsonSchema(),
	SubscriberPatch: subscriberFields.jsonSchema('patch'),
	FieldInput: fieldFields.jsonSchema(),
	FieldPatch: fieldFields.jsonSchema('patch'),
	WebhookInput: webhookFields.jsonSchema(),
	WebhookPatch: webhookFields.jsonSchema('patch'),
	SendRequest: sendFields.jsonSchema(),
	TemplateInput: templateFields.jsonSchema(),
	TemplatePatch: templateFields.jsonSchema('patch'),
	SenderInput: senderFields.jsonSchema(),
	SenderPatch: senderFields.jsonSchema('patch'),
	SubscriberMerge: mergeBody.jsonSchema(),
	SubscriberAddition: addBody.jsonSchema(),
	ErasureBody: erasureBody.jsonSchema(),
	ReplayBody: replayBody.jsonSchema(),
	ImportSpec: importSpec.jsonSchema(),
	ImportBatch: importBatch.jsonSchema(),
	CampaignSpec: {
		allOf: [
			campaignOpening.jsonSchema(),
			{ anyOf: [campaignFields.jsonSchema(), requestsFields.jsonSchema('create')] },
		],
	},
	RecipientBatch: recipientBatch.jsonSchema(),
	RequestBatch: requestBatch.jsonSchema(),
	CompleteBody: completeBody.jsonSchema(),
	PlanBody: planBody.jsonSchema(),
	ReleaseBody: releaseBody.jsonSchema(),
	SuppressionInput: suppressionFields.jsonSchema(),
	SuppressionRows: suppressionRows.jsonSchema(),
	SuppressionRemovalInput: removalFields.jsonSchema(),
};

/** The request and response bodies of an operation; null = no body. */
export interface Bodies {
	input: JsonSchema | null;
	output: JsonSchema | null;
}

/** Every operation has its row: the compiler asks for it. */
export const bodiesOf: Readonly<Record<Operation, Bodies>> = {
	...crud('lists', 'List'),
	'lists.replace': takes('ListPatch', 'List'),
	...crud('subscribers', 'Subscriber'),
	...crud('fields', 'Field'),
	...crud('webhooks', 'Webhook'),
	...crud('senders', 'Sender'),
	events: gives('LoggedEvents'),
	'webhooks.test': gives('TestResult'),
	send: takes('SendRequest', 'SendResult'),
	report: gives('Report'),
	'ext.templates.page': { input: null, output: pageOf('Template') },
	'ext.templates.create': takes('TemplateInput', 'Template'),
	'ext.templates.get': gives('Template'),
	'ext.templates.replace': takes('TemplateInput', 'Template'),
	'ext.templates.patch': takes('TemplatePatch', 'Template'),
	'ext.templates.delete': nothing(),
	'ext.messages.page': {
		input: null,
		output: pageOf('Message', { cursor: text, deleted: ref('DeletedMessages') }),
	},
	'ext.messages.slice': gives('MessageSlice'),
	'ext.messages.progress': gives('SendingProgress'),
	'ext.messages.get': gives('MessageDetail'),
	'ext.messages.cancel': gives('MessageDetail'),
	'ext.messages.retry': gives('MessageDetail'),
	'ext.messages.raw': gives('RawMessage'),
	'ext.reports.report': gives('Report'),
	'ext.reports.details': gives('ReportDetails'),
	'ext.reports.links': gives('CampaignLinks'),
	'ext.lists.add': takes('ListInput', 'AddedList'),
	'ext.lists.get': gives('ListDetails'),
	'ext.lists.patch': takes('ListDetailsPatch', 'ListDetails'),
	'ext.subscribers.merge': takes('SubscriberMerge', 'Subscriber'),
	'ext.subscribers.add': takes('SubscriberAddition', 'Subscriber'),
	'ext.subscribers.clear': gives('Deleted'),
	'ext.fields.countUses': gives('Count'),
	'ext.exports.slice': gives('SubscriberSlice'),
	'ext.tuples.slice': gives('TupleSlice'),
	'ext.deliveries.page': { input: null, output: pageOf('WebhookDelivery') },
	'ext.deliveries.get': gives('WebhookDeliveryDetail'),
	'ext.deliveries.replay': takes('ReplayBody', 'Replayed'),
	'ext.deliveries.stopped': gives('StoppedWebhooks'),
	'ext.deliveries.secrets': gives('SigningSecrets'),
	'ext.deliveries.rotateSecret': gives('SigningSecrets'),
	'ext.erasures.erase': takes('ErasureBody', 'Erasure'),
	'ext.erasures.lift': { input: ref('ErasureBody'), output: null },
	'ext.imports.open': takes('ImportSpec', 'Session'),
	'ext.imports.put': takes('ImportBatch', 'ImportAck'),
	'ext.imports.finish': gives('ImportCounts'),
	'ext.campaigns.open': takes('CampaignSpec', 'CampaignSession'),
	'ext.campaigns.check': { input: ref('CampaignSpec'), output: null },
	'ext.campaigns.put': takes('RecipientBatch', 'AcceptAck'),
	'ext.campaigns.putRequests': takes('RequestBatch', 'AcceptAck'),
	'ext.campaigns.complete': { input: ref('CompleteBody'), output: null },
	'ext.campaigns.addList': gives('ListAck'),
	'ext.campaigns.release': { input: ref('ReleaseBody'), output: null },
	'ext.campaigns.cancel': nothing(),
	'ext.campaigns.page': { input: null, output: pageOf('Campaign') },
	'ext.campaigns.results': gives('CampaignResults'),
	'ext.campaigns.status': gives('CampaignStatus'),
	'ext.audiences.foresee': takes('CampaignSpec', 'AudiencePart'),
	'ext.audiences.plan': takes('PlanBody', 'PlannedTiming'),
	'ext.audiences.leftOut': gives('LeftOutPeople'),
	'ext.people.get': gives('Person'),
	'ext.people.messages': gives('PersonMessages'),
	'ext.attachments.find': gives('StoredBytes'),
	'ext.attachments.put': { input: {}, output: ref('StoredBytes') },
	'ext.suppressions.page': { input: null, output: pageOf('Suppression') },
	'ext.suppressions.slice': gives('SuppressionSlice'),
	'ext.suppressions.create': takes('SuppressionInput', 'Suppression'),
	'ext.suppressions.put': takes('SuppressionRows', 'SuppressionAck'),
	'ext.suppressions.check': takes('SuppressionRows', 'SuppressionAck'),
	'ext.suppressions.remove': takes('SuppressionRemovalInput', 'SuppressionRemoval'),
};

type Verb = 'page' | 'create' | 'get' | 'replace' | 'patch' | 'delete';

function crud<R extends string>(resource: R, name: string): Record<`${R}.${Verb}`, Bodies> {
	const rows: Record<Verb, Bodies> = {
		page: { input: null, output: pageOf(name) },
		create: takes(`${name}Input`, name),
		get: gives(name),
		replace: takes(`${name}Input`, name),
		patch: takes(`${name}Patch`, name),
		delete: nothing(),
	};
	const named = Object.entries(rows).map(([verb, bodies]) => [`${resource}.${verb}`, bodies]);
	// Keys are made of the resource and the verbs above.
	return Object.fromEntries(named) as Record<`${R}.${Verb}`, Bodies>;
}

function takes(input: string, output: string): Bodies {
	return { input: ref(input), output: ref(output) };
}

function gives(output: string): Bodies {
	return { input: null, output: ref(output) };
}

function nothing(): Bodies {
	return { input: null, output: null };
}
