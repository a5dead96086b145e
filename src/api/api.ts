/**
 * The service document as an interface, and nothing else. The engine and the remote client implement it; the HTTP
 * server takes it. Every argument and result is plain data: no cursors, no streams, nothing that cannot be cloned.
 */
import type { Capabilities } from './capabilities.js';
import type { FieldInput, ListInput, SendRequest, SubscriberInput, WebhookInput } from './inputs.js';
import type {
	Field,
	List,
	Page,
	Report,
	ReportQuery,
	SendResult,
	Subscriber,
	SubscriberFilter,
	TestResult,
	Uuid,
	Webhook,
} from './records.js';

/** What rides along with one call and is no part of its body. */
export interface Call {
	signal?: AbortSignal;
	/** Same key and body within 24 h: the first answer again (api-decisions 29). Stored with what it accepts. */
	idempotencyKey?: string;
	/**
	 * `throw`: the caller waits by itself when the service throttles (429, 503 with Retry-After), since what it makes at
	 * the same time has to wait too. Absent: whoever carries the call out waits and tries again.
	 */
	onThrottled?: 'throw';
	/** Whose idempotency key it is: a server passes its token's name, so that clients do not meet each other's. */
	client?: string;
	/** Told of what a `send` was accepted as; the wire carries it in headers. */
	onAccepted?: (accepted: Accepted) => void;
}

/** `campaign` is set for BULK; `submission` where the deployment names it; `replayed` = an idempotency key was met again. */
export interface Accepted {
	campaign: Uuid | null;
	submission: Uuid | null;
	replayed: boolean;
}

/** `page` counts from 1; `page_size` is a wish (a deployment may answer fewer). */
export interface PageRequest {
	page?: number;
	page_size?: number;
	/**
	 * The query of the link that led here, `?` and all: a remote deployment gets it word for word, in place of every other
	 * parameter, because its pages may be counted by something else than `page`. The engine has no use for it.
	 */
	query?: string;
}

/**
 * The five operations of a collection. Every method throws `ApiError`: `not_found` for an unknown id,
 * `invalid` with `fields` for refused input. `replace` is PUT (missing optional fields return to their defaults),
 * `patch` changes what is given.
 */
export interface Crud<T, In, Filter = object> {
	page(request: Filter & PageRequest, call?: Call): Promise<Page<T>>;
	get(id: number, call?: Call): Promise<T>;
	create(input: In, call?: Call): Promise<T>;
	replace(id: number, input: In, call?: Call): Promise<T>;
	patch(id: number, input: Partial<In>, call?: Call): Promise<T>;
	delete(id: number, call?: Call): Promise<void>;
}

/** Service document, "HTTP notifications". */
export interface Webhooks extends Crud<Webhook, WebhookInput> {
	/** Sends a test notification at once, no retries (service document, `run_test`; api-decisions 33). */
	test(id: number, call?: Call): Promise<TestResult>;
}

/** The service document's operations. Every method throws `ApiError`; none is atomic with another. */
export interface Api {
	readonly lists: Crud<List, ListInput>;
	readonly fields: Crud<Field, FieldInput>;
	readonly webhooks: Webhooks;
	/** The subscribers of one list; an unknown list is `not_found` at the first call, before input is validated. */
	subscribers(listId: number): Crud<Subscriber, SubscriberInput, SubscriberFilter>;
	/** Accepts one submission durably, all or nothing (api-decisions 20–29). */
	send(request: SendRequest, call?: Call): Promise<SendResult>;
	/** The events report by its documented parameters. */
	report(query: ReportQuery, call?: Call): Promise<Report>;
	/** What this deployment can do beyond the document; never throws. */
	capabilities(): Promise<Capabilities>;
	close(): Promise<void>;
}
