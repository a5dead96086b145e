/** The service document as an interface. Every argument and result is plain data that can be cloned. */
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
	/** Same key and body within 24 h: the first answer again (api-decisions 29). */
	idempotencyKey?: string;
	/**
	 * `throw`: the caller waits when the service throttles, since its concurrent calls have to wait too.
	 * Absent: the implementation waits and tries again.
	 */
	onThrottled?: 'throw';
	/** The client owns its idempotency keys, submissions and campaigns. Absent: the database's owner. */
	client?: string;
	ownOnly?: true;
	onAccepted?: (accepted: Accepted) => void;
	/** Reports what follows a slice of an export before the slice is read. */
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
	/**
	 * The query of the link to this page, with its `?`. A remote deployment gets it word for word in place of
	 * every other parameter. The engine ignores it.
	 */
	query?: string;
}

/**
 * Every method throws `ApiError`: `not_found` for an unknown id, `invalid` with `fields` for refused input.
 * `replace` is PUT and returns missing fields to their defaults; `patch` changes only the given values.
 */
export interface Crud<T, In, Filter = object, Id = number> {
	page(request: Filter & PageRequest, call?: Call): Promise<Page<T>>;
	get(id: Id, call?: Call): Promise<T>;
	create(input: In, call?: Call): Promise<T>;
	replace(id: Id, input: In, call?: Call): Promise<T>;
	patch(id: Id, input: Partial<In>, call?: Call): Promise<T>;
	delete(id: Id, call?: Call): Promise<void>;
}

/** The document's PUT of a list requires no field, and what is not given stays. */
export interface Lists extends Crud<List, ListInput> {
	replace(id: number, input: Partial<ListInput>, call?: Call): Promise<List>;
}

export interface Webhooks extends Crud<Webhook, WebhookInput> {
	/** Sends a test webhook delivery at once, without retries (api-decisions 33). */
	test(id: number, call?: Call): Promise<TestResult>;
}

/** None of the operations is atomic with another. */
export interface Api {
	readonly lists: Lists;
	readonly fields: Crud<Field, FieldInput>;
	readonly webhooks: Webhooks;
	/** Throws `NoSenders` if the deployment has none (api-decisions 48). */
	readonly senders: Crud<Sender, SenderInput>;
	/** An unknown list is `not_found` at the first call, before input is validated. */
	subscribers(listId: number): Crud<Subscriber, SubscriberInput, SubscriberFilter>;
	/** Accepts one submission durably, all or nothing (api-decisions 20–29). */
	send(request: SendRequest, call?: Call): Promise<SendResult>;
	/** The oldest first (api-decisions 48). Throws `not_found`. */
	events(message: Uuid, call?: Call): Promise<LoggedEvent[]>;
	report(query: ReportQuery, call?: Call): Promise<Report>;
	/**
	 * The extensions of this deployment. Throws `ApiError` without a clear answer: to take our own server for
	 * a foreign one would send the same mail again by the other way.
	 */
	capabilities(): Promise<Capabilities>;
	close(): Promise<void>;
}

export interface WireRequest {
	method: string;
	path: string;
	headers?: Readonly<Record<string, string>>;
	body?: string | Uint8Array;
	/** Another token than the connection's own; `null` sends none. */
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
