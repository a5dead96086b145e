import type { Capabilities } from './capabilities.js';
import type {
	FieldInput,
	ListInput,
	SenderInput,
	SendRequest,
	SubscriberInput,
	WebhookInput,
} from './inputs.js';
import type {
	Field,
	List,
	LoggedEvent,
	Page,
	Report,
	ReportQuery,
	Sender,
	SendResult,
	Subscriber,
	SubscriberFilter,
	TestResult,
	Uuid,
	Webhook,
} from './records.js';

export interface Call {
	signal?: AbortSignal | undefined;
	/** The server answers a repeated key and body with its first answer for 24 hours (api-decisions 29). */
	idempotencyKey?: string;
	/** `throw`: the call fails on 429 instead of retrying, so that the caller can delay its other calls too. */
	onThrottled?: 'throw';
	client?: string;
	ownOnly?: true;
	onAccepted?: (accepted: Accepted) => void;
	/** A method that reads a slice calls this with the key of the next slice before it returns the rows. */
	onNext?: (next: number | null) => void;
}

export interface Accepted {
	campaign: Uuid | null;
	submission: Uuid | null;
	replayed: boolean;
}

export interface PageRequest {
	page?: number;
	page_size?: number;
	/** Query string of a page link. The client sends it unchanged and ignores the other members. */
	query?: string;
}

/** Throws `not_found` and `invalid`. `replace` resets missing fields to their defaults, `patch` keeps them. */
export interface Crud<T, In, Filter = object, Id = number> {
	page(request: Filter & PageRequest, call?: Call): Promise<Page<T>>;
	get(id: Id, call?: Call): Promise<T>;
	create(input: In, call?: Call): Promise<T>;
	replace(id: Id, input: In, call?: Call): Promise<T>;
	patch(id: Id, input: Partial<In>, call?: Call): Promise<T>;
	delete(id: Id, call?: Call): Promise<void>;
}

/** In the service document, PUT of a list requires no field, and keeps omitted fields. */
export interface Lists extends Crud<List, ListInput> {
	replace(id: number, input: Partial<ListInput>, call?: Call): Promise<List>;
}

export interface Webhooks extends Crud<Webhook, WebhookInput> {
	/** Sends a test webhook delivery at once, without retries (api-decisions 33). */
	test(id: number, call?: Call): Promise<TestResult>;
}

export interface Api {
	readonly lists: Lists;
	readonly fields: Crud<Field, FieldInput>;
	readonly webhooks: Webhooks;
	/** Throws `NoSenders` if the service does not have this collection (api-decisions 48). */
	readonly senders: Crud<Sender, SenderInput>;
	/** Each method throws `not_found` for an unknown list, before it validates its input. */
	subscribers(listId: number): Crud<Subscriber, SubscriberInput, SubscriberFilter>;
	/** Stores the whole submission durably, or nothing of it (api-decisions 20–29). */
	send(request: SendRequest, call?: Call): Promise<SendResult>;
	events(message: Uuid, call?: Call): Promise<LoggedEvent[]>;
	report(query: ReportQuery, call?: Call): Promise<Report>;
	/** Throws if it cannot tell whether this is mailctl's server, because a wrong guess could send mails twice. */
	capabilities(): Promise<Capabilities>;
	close(): Promise<void>;
}

export interface WireRequest {
	method: string;
	path: string;
	headers?: Readonly<Record<string, string>>;
	body?: string | Uint8Array;
	token?: string | null;
	signal?: AbortSignal;
}

export interface WireResponse {
	status: number;
	headers: Readonly<Record<string, string>>;
	body: Uint8Array;
	durationMs: number;
}

export type WireExchange = (request: WireRequest) => Promise<WireResponse>;
