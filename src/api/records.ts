/** Records of the API. If an answer has keys that are not declared here, the client keeps these keys. */
import { AttachedFile } from './attachments.js';
import * as t from './schema/record.js';
import type { Infer } from './schema.js';

export type WireDateTime = string;
export type WireDate = string;
export type Uuid = string;

export interface Page<T, Results = T[]> {
	count: number;
	next: string | null;
	previous: string | null;
	results: Results;
	cursor?: string;
}

export interface KeySlice<T> {
	results: T[];
	next: string | null;
}

export const List = t.component('List', {
	id: t.needed(t.id),
	name: t.needed(t.text),
	email_reason: t.text,
	active_subscribers_count: t.count,
	inactive_subscribers_count: t.count,
	overall_subscribers_count: t.count,
	date_created: t.moment,
});
export type List = Infer<typeof List>;

/** Values that mailctl stores. Other services may return any JSON (api-decisions 13). */
export type MetaValue = string | number | boolean | null;
export type Meta = Record<string, MetaValue>;

export const Subscriber = t.component('Subscriber', {
	id: t.needed(t.id),
	list_id: t.id,
	email: t.needed(t.email),
	name: t.text,
	is_active: t.needed(t.flag),
	disable_reason: t.orNull(t.text),
	is_email_verified: t.flag,
	meta: t.object<Record<string, unknown>>({ additionalProperties: true }),
	source: t.typed<string>(t.word(['IMPORT', 'FORM', 'API', 'APP'])),
	opt_in_signed: t.orNull(t.moment),
	date_created: t.moment,
});
export type Subscriber = Infer<typeof Subscriber>;

export interface SubscriberFilter {
	email__icontains?: string;
	email__exact?: string;
	is_active?: boolean;
}

export const Field = t.component('Field', {
	id: t.needed(t.id),
	variable: t.needed(t.text),
	name: t.needed(t.text),
	date_created: t.moment,
});
export type Field = Infer<typeof Field>;

export const webhookTypes = ['OPENED', 'UNSUBSCRIBED', 'REDIRECTED', 'HARDBOUNCED', 'SOFTBOUNCED'] as const;
export type WebhookType = (typeof webhookTypes)[number];

/** `password` has no default: the client sends a password only if the caller gives one (api-decisions 18). */
export const webhookDefaults = { is_auth_enabled: false, login: '' };

export const Webhook = t.component('Webhook', {
	id: t.needed(t.id),
	url: t.needed(t.described(t.text, { format: 'uri' })),
	type: t.needed(t.word(webhookTypes)),
	is_auth_enabled: t.flag,
	login: t.text,
	password: t.text,
	date_created: t.moment,
});
export type Webhook = Infer<typeof Webhook>;

/** The service document does not show this answer, so a service may omit any value (api-decisions 33). */
export const TestResult = t.component('TestResult', {
	result: t.typed<boolean | null>(t.flag),
	status_code: t.orNull(t.integer),
	error: t.orNull(t.text),
	duration_ms: t.typed<number | null>(t.count),
});
export type TestResult = Infer<typeof TestResult>;

export const SendResult = t.component('SendResult', {
	messages: t.needed(t.listOf(t.record({ to: t.needed(t.text), id: t.needed(t.uuid) }))),
	result: t.needed(t.flag),
	messages_created: t.needed(t.count),
});
export type SendResult = Infer<typeof SendResult>;

export const eventTypes = [
	'CREATED',
	'SENT',
	'OPENED',
	'REDIRECTED',
	'UNSUBSCRIBED',
	'SOFTBOUNCED',
	'HARDBOUNCED',
] as const;
export type EventType = (typeof eventTypes)[number];

export interface ReportQuery {
	date_from?: WireDate;
	date_to?: WireDate;
	campaign_unique_id?: Uuid;
	event_types?: readonly EventType[];
}

const ReportTotal = t.record({
	sent: t.needed(t.count),
	opened: t.needed(t.count),
	opened_percent: t.text,
	redirected_percent: t.number,
	softbounced_percent: t.number,
	unsubscribed_percent: t.number,
	hardbounced_percent: t.number,
});
export type ReportTotal = Infer<typeof ReportTotal>;

const wireDate = t.described(t.text, { pattern: String.raw`^\d{2}\.\d{2}\.\d{4}$` });

export const Report = t.record({
	total: t.needed(ReportTotal),
	data: t.needed(
		t.listOf(t.record({ date: t.needed(wireDate), opened: t.needed(t.count), sent: t.needed(t.count) })),
	),
});
export type Report = Infer<typeof Report>;

export const eventOfTotal: Readonly<Record<keyof ReportTotal, EventType>> = {
	sent: 'SENT',
	opened: 'OPENED',
	opened_percent: 'OPENED',
	redirected_percent: 'REDIRECTED',
	unsubscribed_percent: 'UNSUBSCRIBED',
	softbounced_percent: 'SOFTBOUNCED',
	hardbounced_percent: 'HARDBOUNCED',
};

export function isCounted(total: keyof ReportTotal, events: readonly EventType[]): boolean {
	return events.length === 0 || events.includes(eventOfTotal[total]);
}

export function hasDays(events: readonly EventType[]): boolean {
	return isCounted('sent', events) || isCounted('opened', events);
}

export const Template = t.component('Template', {
	id: t.needed(t.uuid),
	name: t.needed(t.text),
	text_body: t.text,
	html_body: t.text,
	date_created: t.moment,
	date_updated: t.moment,
});
export type Template = Infer<typeof Template>;

export const Sender = t.component('Sender', {
	id: t.needed(t.id),
	full_name: t.text,
	from_email: t.needed(t.email),
	reply_to_email: t.text,
	is_verified: t.flag,
	date_created: t.moment,
});
export type Sender = Infer<typeof Sender>;

export const messageStates = [
	'staged',
	'queued',
	'leased',
	'sent',
	'deferred',
	'bounced',
	'failed',
	'uncertain',
	'canceled',
] as const;
export type MessageState = (typeof messageStates)[number];

export const messagesByState = t.object<Partial<Record<MessageState, number>>>({
	description: 'The number of messages by state. If a state is absent, no message has it.',
	properties: Object.fromEntries(messageStates.map((state) => [state, t.count.schema()])),
	additionalProperties: false,
});

export const DeletedMessages = t.component('DeletedMessages', { before: t.moment, keep_messages: t.text });
export type DeletedMessages = Infer<typeof DeletedMessages>;

export const messageTypes = ['TRANSACTIONAL', 'BULK'] as const;

export const Message = t.component('Message', {
	id: t.needed(t.uuid),
	to: t.needed(t.text),
	from: t.text,
	subject: t.text,
	type: t.word(messageTypes),
	tag: t.orNull(t.text),
	campaign_unique_id: t.orNull(t.uuid),
	list_id: t.orNull(t.integer),
	state: t.needed(t.word(messageStates)),
	attempts: t.count,
	due_at: t.orNull(t.moment),
	date_created: t.moment,
	date_sent: t.orNull(t.moment),
	last_reply: t.orNull(t.text),
	campaign: t.newer(t.orNull(t.text)),
});
export type Message = Infer<typeof Message>;

const limitName = { setting: t.text, limit: t.text, domain: t.orNull(t.text) };
export type LimitName = t.RecordOf<typeof limitName>;

const MessageHold = t.record({ ...limitName, until: t.moment });
export type MessageHold = Infer<typeof MessageHold>;

/** A complaint, or a bounce that arrives after a mail server has accepted the message. */
const MessageReport = t.component('MessageReport', {
	at: t.moment,
	event: t.word(['HARDBOUNCED', 'SOFTBOUNCED', 'COMPLAINED']),
	code: t.orNull(t.text),
	diagnostic: t.orNull(t.text),
});
export type MessageReport = Infer<typeof MessageReport>;

const MessageEvent = t.component('MessageEvent', {
	type: t.word(eventTypes),
	time: t.moment,
	count: t.count,
	link: t.orNull(t.text),
	machine: t.flag,
});
export type MessageEvent = Infer<typeof MessageEvent>;

export const LoggedEvent = t.record({
	type: t.needed(t.word(eventTypes)),
	date: t.needed(t.moment),
	count: t.count,
	url: t.orNull(t.text),
	machine: t.flag,
});
export type LoggedEvent = Infer<typeof LoggedEvent>;

const DeliveryAttempt = t.component('DeliveryAttempt', {
	number: t.count,
	at: t.moment,
	outcome: t.text,
	phase: t.text,
	code: t.orNull(t.integer),
	enhanced: t.orNull(t.text),
	text: t.text,
});
export type DeliveryAttempt = Infer<typeof DeliveryAttempt>;

export type Tracking = 'on' | 'off';

export const MessageDetail = t.component('MessageDetail', {
	...Message.keys,
	delivery_attempts: t.needed(t.listOf(DeliveryAttempt)),
	events: t.newer(t.listOf(MessageEvent)),
	reports: t.newer(t.listOf(MessageReport)),
	held_by: t.newer(t.listOf(MessageHold)),
	tracking: t.newer(t.word(['on', 'off'])),
	attachments: t.optional(t.listOf(AttachedFile)),
});
export type MessageDetail = Infer<typeof MessageDetail>;

export const SendingProgress = t.component('SendingProgress', {
	messages: t.needed(messagesByState),
	paused: t.orNull(t.text),
	has_worker: t.newer(t.flag),
});
export type SendingProgress = Infer<typeof SendingProgress>;
