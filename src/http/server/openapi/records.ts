/** The answers of the API as JSON Schemas: the records of `api/records.ts` and `api/capabilities.ts`. */
import { deliveryStates } from '../../../api/deliveries.js';
import { eventTypes, messageStates, webhookTypes } from '../../../api/records.js';
import type { JsonSchema } from '../../../api/schema/field.js';
import { suppressionReasons, suppressionSources } from '../../../api/suppressions.js';
import { acceptCounts, campaignSchemas } from './campaign-records.js';
import { reportSchemas } from './report-records.js';
import {
	count,
	flag,
	id,
	listOf,
	moment,
	momentOrNull,
	record,
	ref,
	states,
	text,
	textOrNull,
	uuid,
	uuidOrNull,
} from './shapes.js';

const message = {
	id: uuid,
	to: text,
	from: text,
	subject: text,
	type: { type: 'string', enum: ['TRANSACTIONAL', 'BULK'] },
	tag: textOrNull,
	campaign_unique_id: uuidOrNull,
	list_id: { type: ['integer', 'null'] },
	state: { type: 'string', enum: [...messageStates] },
	attempts: count,
	due_at: momentOrNull,
	date_created: moment,
	date_sent: momentOrNull,
	last_reply: textOrNull,
	campaign: textOrNull,
};

const messageDetail = {
	...message,
	delivery_attempts: { type: 'array', items: ref('DeliveryAttempt') },
	events: { type: 'array', items: ref('MessageEvent') },
	reports: { type: 'array', items: ref('MessageReport') },
	held_by: listOf(record({ setting: text, limit: text, domain: textOrNull, until: moment })),
	tracking: { type: 'string', enum: ['on', 'off'] },
	attachments: listOf(ref('AttachedFile')),
};

const visitor = { ip: textOrNull, user_agent: textOrNull, smtp_code: textOrNull, diagnostic: textOrNull };
const delivered = { id: uuid, webhook_id: id, type: text, state: text, date_created: moment };
const refused = { code: text, error: textOrNull };

const subscriber = {
	id,
	list_id: id,
	email: { type: 'string', format: 'email' },
	name: text,
	is_active: flag,
	disable_reason: textOrNull,
	is_email_verified: flag,
	meta: { type: 'object', additionalProperties: true },
	source: { type: 'string', enum: ['IMPORT', 'FORM', 'API', 'APP'] },
	opt_in_signed: momentOrNull,
	date_created: moment,
};

const webhookDelivery = {
	id: uuid,
	webhook_id: id,
	type: text,
	message_id: uuidOrNull,
	state: { type: 'string', enum: [...deliveryStates] },
	attempts: count,
	last_status: { type: ['integer', 'null'] },
	last_error: textOrNull,
	answer_excerpt: textOrNull,
	due_at: momentOrNull,
	date_created: moment,
	date_attempted: momentOrNull,
	date_finished: momentOrNull,
};

const importCounts = {
	type: 'object',
	properties: {
		...{ created: count, updated: count, unchanged: count, duplicate: count, rejected: count },
		other_reasons: count,
	},
	required: ['created', 'updated', 'unchanged', 'duplicate', 'rejected'],
};

/** Name → schema. */
export const recordSchemas: Readonly<Record<string, JsonSchema>> = {
	List: record({
		id,
		name: text,
		email_reason: text,
		active_subscribers_count: count,
		inactive_subscribers_count: count,
		overall_subscribers_count: count,
		date_created: moment,
	}),
	AddedList: record({ is_new: flag, list: ref('List') }),
	ListDetails: record({ id, public_name: textOrNull }),
	Subscriber: record(subscriber),
	Field: record({ id, variable: text, name: text, date_created: moment }),
	Webhook: record({
		id,
		url: { type: 'string', format: 'uri' },
		type: { type: 'string', enum: [...webhookTypes] },
		is_auth_enabled: flag,
		login: text,
		password: text,
		date_created: moment,
	}),
	TestResult: record({
		result: flag,
		status_code: { type: ['integer', 'null'] },
		error: textOrNull,
		duration_ms: count,
	}),
	SendResult: record({
		messages: { type: 'array', items: record({ to: text, id: uuid }) },
		result: flag,
		messages_created: count,
	}),
	...reportSchemas,
	Template: record({
		id: uuid,
		name: text,
		text_body: text,
		html_body: text,
		date_created: moment,
		date_updated: moment,
	}),
	Sender: record({
		id,
		full_name: text,
		from_email: { type: 'string', format: 'email' },
		reply_to_email: text,
		is_verified: flag,
		date_created: moment,
	}),
	LoggedEvents: record({
		results: {
			type: 'array',
			items: record({
				type: { type: 'string', enum: [...eventTypes] },
				date: moment,
				count,
				url: textOrNull,
				machine: flag,
			}),
		},
	}),
	Message: record(message),
	MessageDetail: record(messageDetail, ['attachments']),
	AttachedFile: record({ name: text, type: text, sha256: text, size: count, content_id: text }, [
		'content_id',
	]),
	StoredBytes: record({ sha256: text, size: count }),
	MessageEvent: record({
		type: { type: 'string', enum: [...eventTypes] },
		time: moment,
		count,
		link: textOrNull,
		machine: { type: 'boolean' },
	}),
	MessageReport: record({
		at: moment,
		event: { type: 'string', enum: ['HARDBOUNCED', 'SOFTBOUNCED', 'COMPLAINED'] },
		code: textOrNull,
		diagnostic: textOrNull,
	}),
	DeliveryAttempt: record({
		number: count,
		at: moment,
		outcome: text,
		phase: text,
		code: { type: ['integer', 'null'] },
		enhanced: textOrNull,
		text,
	}),
	RawMessage: record({ id: uuid, raw_base64: { type: 'string', contentEncoding: 'base64' } }),
	SendingProgress: record({ messages: states, paused: textOrNull, has_worker: { type: 'boolean' } }),
	Deleted: record({ deleted: count }),
	Count: record({ count }),
	SubscriberSlice: record({
		results: { type: 'array', items: ref('Subscriber') },
		next: { type: ['integer', 'null'] },
	}),
	TupleSlice: record({
		results: { type: 'array', items: { type: 'array' } },
		next: { type: ['integer', 'null'] },
	}),
	Erasure: record({ subscribers: count, messages: count, canceled: count, suppressions: count }),
	Session: {
		type: 'object',
		properties: { id: uuid, position: count, counts: ref('ImportCounts') },
		required: ['id', 'position'],
	},
	CampaignSession: record({ id: uuid, key: text, position: count }),
	Reject: record({ row: count, code: text, error: text }),
	ImportCounts: importCounts,
	ImportAck: record({
		position: count,
		counts: ref('ImportCounts'),
		rejects: { type: 'array', items: ref('Reject') },
	}),
	AcceptCounts: acceptCounts,
	AcceptAck: record({
		position: count,
		counts: ref('AcceptCounts'),
		rejects: { type: 'array', items: ref('Reject') },
	}),
	ListAck: record(
		{
			position: count,
			counts: ref('AcceptCounts'),
			rejects: { type: 'array', items: ref('Reject') },
			is_partial: {
				...flag,
				description: 'True where the list goes on: call again. Absent: it was read to its end.',
			},
		},
		['is_partial'],
	),
	...campaignSchemas,
	Suppression: record({
		email: { type: 'string', format: 'email' },
		reason: { type: 'string', enum: [...suppressionReasons] },
		list_id: { type: ['integer', 'null'] },
		source: { type: 'string', examples: [...suppressionSources] },
		date_created: moment,
		expires_at: momentOrNull,
	}),
	SuppressionSlice: record({
		results: { type: 'array', items: ref('Suppression') },
		next: textOrNull,
	}),
	SuppressionAck: record({
		counts: record({ created: count, updated: count, unchanged: count, rejected: count }),
		rejects: { type: 'array', items: ref('Reject') },
	}),
	SuppressionRemoval: record({
		removed: { type: 'array', items: ref('Suppression') },
		inactive_subscribers: count,
	}),
	Person: record(
		{
			email: text,
			subscribers: listOf(record({ ...subscriber, list_name: text })),
			suppressions: listOf(ref('Suppression')),
			date_erased: momentOrNull,
			left_out: listOf(record({ campaign: uuid, key: text, state: text, date_created: moment, ...refused })),
			copies: listOf(uuid),
			date_sender: momentOrNull,
			messages: count,
			old_messages: count,
			deleted: ref('DeletedMessages'),
			is_known: flag,
		},
		['deleted'],
	),
	MessageSlice: record({ results: listOf(ref('Message')), next: textOrNull }),
	DeletedMessages: record({ before: moment, keep_messages: text }),
	PersonMessages: record({
		results: listOf(
			record(
				{
					...messageDetail,
					variables: { type: 'object', additionalProperties: text },
					visits: listOf(record({ type: text, at: moment, url: textOrNull, machine: flag, ...visitor })),
					webhook_deliveries: listOf(record({ ...delivered, payload: text })),
				},
				['attachments'],
			),
		),
		next: { type: ['integer', 'null'] },
	}),
	WebhookDelivery: record(webhookDelivery),
	WebhookDeliveryDetail: record({
		...webhookDelivery,
		payload: text,
		answer: textOrNull,
		delivery_attempts: {
			type: 'array',
			items: record({
				number: count,
				at: moment,
				status: { type: ['integer', 'null'] },
				error: textOrNull,
				duration_ms: count,
			}),
		},
	}),
	Replayed: record({ replayed: count }),
	StoppedWebhooks: record({
		stopped: { type: 'array', items: record({ webhook_id: count, date_stopped: moment, waiting: count }) },
	}),
	SigningSecrets: record({
		secrets: {
			type: 'array',
			items: record({ secret: text, date_created: moment, date_retired: momentOrNull }),
		},
	}),
	/** DRF's two shapes of a refusal. */
	Refusal: record({ detail: text }),
	Invalid: {
		type: 'object',
		description:
			'Complaints by field; those of lists and dictionaries by index and key; of several fields: non_field_errors.',
		additionalProperties: { anyOf: [{ type: 'array', items: text }, { type: 'object' }] },
	},
};
