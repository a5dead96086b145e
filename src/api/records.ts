/**
 * The records of the service document on the wire: snake_case, naive UTC date-times with six fractional digits. A
 * record from a foreign deployment may carry further keys; they are kept.
 */
import type { AttachedFile } from './attachments.js';

/** `YYYY-MM-DDTHH:MM:SS.ffffff`, UTC without a zone (service document, "Resources and their fields"). */
export type WireDateTime = string;
/** `DD.MM.YYYY` (service document, "Events report"). */
export type WireDate = string;
/** Lower-case UUID with hyphens. */
export type Uuid = string;

/** Service document, "Paginated list envelope". */
export interface Page<T, Results = T[]> {
	count: number;
	next: string | null;
	previous: string | null;
	results: Results;
	/** Ours: where `slice` of the collection goes on behind this page; absent: it has none, or nothing follows. */
	cursor?: string;
}

/** A part of a collection by key. `next`: the cursor of the next one; null at the end. */
export interface KeySlice<T> {
	results: T[];
	next: string | null;
}

/** Service document, "List (subscriber list)". */
export interface List {
	id: number;
	name: string;
	email_reason: string;
	active_subscribers_count: number;
	inactive_subscribers_count: number;
	overall_subscribers_count: number;
	date_created: WireDateTime;
}

/** Values that the engine accepts in `meta` (api-decisions 13); a foreign deployment may have any JSON. */
export type MetaValue = string | number | boolean | null;
/** Variable → value. */
export type Meta = Record<string, MetaValue>;

/** Why the engine itself deactivated a subscriber (api-decisions 14). */
export type DisableReason = 'UNSUBSCRIBED' | 'HARDBOUNCED' | 'SOFTBOUNCED' | 'COMPLAINED';

/** Service document, "Subscriber". `disable_reason` and `source` of a deployment are shown as they are. */
export interface Subscriber {
	id: number;
	list_id: number;
	email: string;
	name: string;
	is_active: boolean;
	disable_reason: string | null;
	is_email_verified: boolean;
	meta: Record<string, unknown>;
	source: string;
	opt_in_signed: WireDateTime | null;
	date_created: WireDateTime;
}

/** Query filters of a subscriber list (service document, "Subscribers"; api-decisions 9). */
export interface SubscriberFilter {
	email__icontains?: string;
	email__exact?: string;
	is_active?: boolean;
}

/** Service document, "Additional field". */
export interface Field {
	id: number;
	variable: string;
	name: string;
	date_created: WireDateTime;
}

/** Events that a webhook can receive (service document, "Events"). */
export const webhookTypes = ['OPENED', 'UNSUBSCRIBED', 'REDIRECTED', 'HARDBOUNCED', 'SOFTBOUNCED'] as const;
/** One of `webhookTypes`. */
export type WebhookType = (typeof webhookTypes)[number];

/** What a PUT says where nothing is given. A password that was not given is never sent (api-decisions 18). */
export const webhookDefaults = { is_auth_enabled: false, login: '' };

/** Service document, "HTTP notification (webhook)". `password` is in the answers, by that document. */
export interface Webhook {
	id: number;
	url: string;
	type: WebhookType;
	is_auth_enabled: boolean;
	login: string;
	password: string;
	date_created: WireDateTime;
}

/**
 * Answer of `run_test` (api-decisions 33). The document shows no body, so a deployment may omit any value: null. Our
 * own engine always gives `result` and `duration_ms`.
 */
export interface TestResult {
	/** Whether the target accepted it. */
	result: boolean | null;
	status_code: number | null;
	error: string | null;
	duration_ms: number | null;
}

/** Service document, "Send a message", response. */
export interface SendResult {
	messages: { to: string; id: Uuid }[];
	result: boolean;
	messages_created: number;
}

/** Events that the report counts (service document, "Events"). */
export const eventTypes = [
	'CREATED',
	'SENT',
	'OPENED',
	'REDIRECTED',
	'UNSUBSCRIBED',
	'SOFTBOUNCED',
	'HARDBOUNCED',
] as const;
/** One of `eventTypes`. */
export type EventType = (typeof eventTypes)[number];

/** Query of the events report; documented parameters only. */
export interface ReportQuery {
	date_from?: WireDate;
	date_to?: WireDate;
	campaign_unique_id?: Uuid;
	event_types?: readonly EventType[];
}

/** Totals of the report: `opened_percent` is a string, the others numbers (the document; api-decisions 36). */
export interface ReportTotal {
	sent: number;
	opened: number;
	opened_percent: string;
	redirected_percent: number;
	softbounced_percent: number;
	unsubscribed_percent: number;
	hardbounced_percent: number;
}

/** Service document, "Events report", the value of `results`. */
export interface Report {
	total: ReportTotal;
	data: { date: WireDate; opened: number; sent: number }[];
}

/** The events that a figure of the totals counts. */
export const eventOfTotal: Readonly<Record<keyof ReportTotal, EventType>> = {
	sent: 'SENT',
	opened: 'OPENED',
	opened_percent: 'OPENED',
	redirected_percent: 'REDIRECTED',
	unsubscribed_percent: 'UNSUBSCRIBED',
	softbounced_percent: 'SOFTBOUNCED',
	hardbounced_percent: 'HARDBOUNCED',
};

/** Whether a report of these events counts the figure; without any it counts all. A figure that it leaves out is 0. */
export function isCounted(total: keyof ReportTotal, events: readonly EventType[]): boolean {
	return events.length === 0 || events.includes(eventOfTotal[total]);
}

/** Whether the days of a report of these events have a figure: theirs are of what was sent and opened. */
export function hasDays(events: readonly EventType[]): boolean {
	return isCounted('sent', events) || isCounted('opened', events);
}

/** A message template (ours; api-decisions 23: its name is the subject). */
export interface Template {
	id: Uuid;
	name: string;
	text_body: string;
	html_body: string;
	date_created: WireDateTime;
	date_updated: WireDateTime;
}

/** A sender address (api-decisions 48). Name and Reply-To are blank when there is none. */
export interface Sender {
	id: number;
	full_name: string;
	from_email: string;
	reply_to_email: string;
	/** False: nothing may be sent from it yet. The engine has verified ones alone. */
	is_verified: boolean;
	date_created: WireDateTime;
}

/** Every state of a message, from staged to final. */
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
/** One of `messageStates`; final are sent, bounced, failed, uncertain and canceled. */
export type MessageState = (typeof messageStates)[number];

/** Messages that retention has deleted: those created before a moment, by the setting `keep_messages` (`400d`). */
export interface DeletedMessages {
	before: WireDateTime;
	keep_messages: string;
}

/** One message to one recipient (ours). Times are null until they happen. */
export interface Message {
	id: Uuid;
	to: string;
	from: string;
	subject: string;
	type: 'TRANSACTIONAL' | 'BULK';
	tag: string | null;
	campaign_unique_id: Uuid | null;
	list_id: number | null;
	state: MessageState;
	attempts: number;
	due_at: WireDateTime | null;
	date_created: WireDateTime;
	date_sent: WireDateTime | null;
	last_reply: string | null;
	/** The name of the campaign (ours); null: of none that has one. Absent: an older server. */
	campaign?: string | null;
}

/** A limit on sending (ours): its setting and its text there, such as `gmail.com=10/m`. */
export interface LimitName {
	setting: string;
	limit: string;
	/** The domain whose mail it counts, separately; null: it counts all mail. */
	domain: string | null;
}

/** A limit that holds a message back, and its earliest end (ours). */
export interface MessageHold extends LimitName {
	until: WireDateTime;
}

/**
 * A report about a message by a mail that came back (ours): it bounced after a server had accepted it, or the recipient
 * complained. Code and diagnostic are null where the mail has none, and for a complaint.
 */
export interface MessageReport {
	at: WireDateTime;
	event: 'HARDBOUNCED' | 'SOFTBOUNCED' | 'COMPLAINED';
	/** Reply code, else enhanced code. */
	code: string | null;
	/** One line of at most 500 characters. */
	diagnostic: string | null;
}

/** Events of a message, once for each type, link and kind of visitor (api-decisions 41). */
export interface MessageEvent {
	type: EventType;
	time: WireDateTime;
	/** How often. */
	count: number;
	/** The target of a REDIRECTED; null for other types, and where it is not stored any more. */
	link: string | null;
	/** A program did it, not a person. */
	machine: boolean;
}

/** The same on the wire of `GET /message/events/{uuid}/` (api-decisions 48). */
export interface LoggedEvent {
	type: EventType;
	date: WireDateTime;
	count: number;
	url: string | null;
	machine: boolean;
}

/** A message with all details of its delivery; servers may omit the optional ones. */
export interface MessageDetail extends Message {
	/** In the order they were made. */
	delivery_attempts: DeliveryAttempt[];
	/** In the order of their times. */
	events?: MessageEvent[];
	/** In the order they came. */
	reports?: MessageReport[];
	/** Limits that hold it back; none when it does not wait, or waits for something else. */
	held_by?: MessageHold[];
	/** `off`: it has no pixel, and its links lead straight to their targets. */
	tracking?: Tracking;
	/** In their order; absent: none. */
	attachments?: readonly AttachedFile[];
}

/** Whether opens and clicks of a message are counted (ours). */
export type Tracking = 'on' | 'off';

/** One conversation, or attempt at one, with an SMTP server (ours). */
export interface DeliveryAttempt {
	number: number;
	at: WireDateTime;
	outcome: string;
	phase: string;
	code: number | null;
	enhanced: string | null;
	text: string;
}

/** The progress of sending a scope; `messages` by state, absent = 0. */
export interface SendingProgress {
	messages: Partial<Record<MessageState, number>>;
	/** Why the mail server takes nothing at the moment; null = it does, or the reason is unknown here. */
	paused: string | null;
	/** False: no process sends at the moment; absent: a service that does not tell. */
	has_worker?: boolean;
}
