/**
 * The records of the service document as they stand on the wire: snake_case, naive UTC date-times with six
 * fractional digits. A record from a foreign deployment may carry further keys; they are kept.
 */

/** `YYYY-MM-DDTHH:MM:SS.ffffff`, UTC without a zone (service document, "Resources and their fields"). */
export type WireDateTime = string;
/** `DD.MM.YYYY` (service document, "Events report"). */
export type WireDate = string;
/** Lower-case UUID with hyphens. */
export type Uuid = string;

/** Service document, "Paginated list envelope". */
export interface Page<T> {
	count: number;
	next: string | null;
	previous: string | null;
	results: T[];
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

/** Values the engine takes in `meta` (api-decisions 13); a foreign deployment may hold anything JSON can say. */
export type MetaValue = string | number | boolean | null;
/** Variable → value. */
export type Meta = Record<string, MetaValue>;

/** Why the engine itself deactivated somebody (api-decisions 14). */
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

/** Events that a notification can be about (service document, "Events"). */
export const webhookTypes = ['OPENED', 'UNSUBSCRIBED', 'REDIRECTED', 'HARDBOUNCED', 'SOFTBOUNCED'] as const;
/** One of `webhookTypes`. */
export type WebhookType = (typeof webhookTypes)[number];

/** Service document, "HTTP notification (webhook)". `password` is in the answers, as the document says. */
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
 * Answer of `run_test` (api-decisions 33). The document shows no body, so a deployment need not tell anything: null is
 * what it did not say. Our own engine always tells `result` and `duration_ms`.
 */
export interface TestResult {
	/** Whether the target took it. */
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

/** A message template (ours; api-decisions 23: its name is the subject). */
export interface Template {
	id: Uuid;
	name: string;
	text_body: string;
	html_body: string;
	date_created: WireDateTime;
	date_updated: WireDateTime;
}

/** A verified sender address (ours). */
export interface Sender {
	id: number;
	email: string;
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
}

/** A limit on sending (ours): the setting that holds it and how it is written there, such as `gmail.com=10/m`. */
export interface LimitName {
	setting: string;
	limit: string;
	/** The one whose mail it counts, by itself; null: it counts all mail. */
	domain: string | null;
}

/** A limit that holds a message back, and until when at least (ours). */
export interface MessageHold extends LimitName {
	until: WireDateTime;
}

/**
 * What a mail that came back said of a message (ours): it bounced after a server had taken it, or the recipient
 * complained. Code and diagnostic are null where the mail told none, and for a complaint.
 */
export interface MessageReport {
	at: WireDateTime;
	event: 'HARDBOUNCED' | 'SOFTBOUNCED' | 'COMPLAINED';
	/** Reply code, else enhanced code. */
	code: string | null;
	/** One line of at most 500 characters. */
	diagnostic: string | null;
}

/** A message with all that is known of its delivery; what is optional is absent from servers that do not tell. */
export interface MessageDetail extends Message {
	/** In the order they were made. */
	delivery_attempts: DeliveryAttempt[];
	/** In the order they came. */
	reports?: MessageReport[];
	/** Limits that hold it back; none when it does not wait, or for something else. */
	held_by?: MessageHold[];
}

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
