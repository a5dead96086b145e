/**
 * The service document as an interface. The engine and the remote client implement it; the HTTP server uses it. Every
 * argument and result is plain data: no cursors, no streams, everything can be cloned.
 */
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
	/** Same key and body within 24 h: the first answer again (api-decisions 29). Stored with the accepted submission. */
	idempotencyKey?: string;
	/**
	 * `throw`: the caller waits by itself when the service throttles (429, 503 with Retry-After), since its concurrent
	 * calls have to wait too. Absent: the implementation waits and tries again.
	 */
	onThrottled?: 'throw';
	/**
	 * The client of the call: a server passes its token's name. The client owns its idempotency keys, submissions and
	 * campaigns. Absent: the database's owner.
	 */
	client?: string;
	/** Messages and campaigns of other clients are treated as missing. */
	ownOnly?: true;
	/** Reports how a `send` was accepted; the wire carries it in headers. */
	onAccepted?: (accepted: Accepted) => void;
	/** Reports what follows a slice of an export before the slice is read; null: nothing. The wire carries it in a header. */
	onNext?: (next: number | null) => void;
}

/** `campaign` is set for BULK; `submission` where the deployment names it; `replayed` = an idempotency key was met again. */
export interface Accepted {
	campaign: Uuid | null;
	submission: Uuid | null;
	replayed: boolean;
}

/** `page` counts from 1; `page_size` is a request (a deployment may return fewer). */
export interface PageRequest {
	page?: number;
	page_size?: number;
	/**
	 * The query of the link to this page, with its `?`. A remote deployment gets it word for word, in place of every other
	 * parameter, because its pages may be counted by something else than `page`. The engine ignores it.
	 */
	query?: string;
}

/**
 * The five operations of a collection. Every method throws `ApiError`: `not_found` for an unknown id, `invalid` with
 * `fields` for refused input. `replace` is PUT (missing optional fields return to their defaults), `patch` changes only
 * the given values.
 */
export interface Crud<T, In, Filter = object, Id = number> {
	page(request: Filter & PageRequest, call?: Call): Promise<Page<T>>;
	get(id: Id, call?: Call): Promise<T>;
	create(input: In, call?: Call): Promise<T>;
	replace(id: Id, input: In, call?: Call): Promise<T>;
	patch(id: Id, input: Partial<In>, call?: Call): Promise<T>;
	delete(id: Id, call?: Call): Promise<void>;
}

/** Service document, "Lists": its PUT requires no field, and what is not given stays. */
export interface Lists extends Crud<List, ListInput> {
	replace(id: number, input: Partial<ListInput>, call?: Call): Promise<List>;
}

export interface Webhooks extends Crud<Webhook, WebhookInput> {
	/** Sends a test webhook delivery at once, no retries (service document, `run_test`; api-decisions 33). */
	test(id: number, call?: Call): Promise<TestResult>;
}

/** The service document's operations. Every method throws `ApiError`; none is atomic with another. */
export interface Api {
	readonly lists: Lists;
	readonly fields: Crud<Field, FieldInput>;
	readonly webhooks: Webhooks;
	/** Addresses are unique without regard to case. Throws `NoSenders` where a deployment has none (api-decisions 48). */
	readonly senders: Crud<Sender, SenderInput>;
	/** The subscribers of one list; an unknown list is `not_found` at the first call, before input is validated. */
	subscribers(listId: number): Crud<Subscriber, SubscriberInput, SubscriberFilter>;
	/** Accepts one submission durably, all or nothing (api-decisions 20–29). */
	send(request: SendRequest, call?: Call): Promise<SendResult>;
	/** The events of a message, the oldest first (api-decisions 48). Throws `not_found`. */
	events(message: Uuid, call?: Call): Promise<LoggedEvent[]>;
	report(query: ReportQuery, call?: Call): Promise<Report>;
	/**
	 * The extensions of this deployment beyond the document. Throws `ApiError` without a clear answer (`network`,
	 * `throttled`, a 5xx): to take our own server for a foreign one would send the same mail again by the other way.
	 */
	capabilities(): Promise<Capabilities>;
	close(): Promise<void>;
}

/** A request below the base URL. The connection adds its token unless `token` is given. */
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

/**
 * Makes one exchange, without retries. Throws `ApiError` `network` without an answer, `bad_answer` for one too large.
 */
export type WireExchange = (request: WireRequest) => Promise<WireResponse>;
