/** A request and its response as plain data, with sockets or without. */

export interface HttpRequest {
	method: string;
	target: string;
	/** Names in lower case; repeated ones joined by `, `. */
	headers: Readonly<Record<string, string | undefined>>;
	/** A function reads it on demand: a refused request takes no memory for its body. */
	body: Uint8Array | ReadBody | null;
	readonly signal?: AbortSignal;
}

/**
 * Reads a body of at most this many octets, which must be complete within the time where one is given; `null` = there
 * is none. A `file` waits for earlier ones of its client. Throws `ApiError` `too_large`, `unavailable` (no memory for
 * it), `network` (the client left).
 */
export type ReadBody = (maxBytes: number, timeoutMs?: number, kind?: 'file') => Promise<Uint8Array | null>;

/** One response. `Content-Length` is added when it is written to a socket, unless it is present. */
export interface HttpResponse {
	status: number;
	headers: Readonly<Record<string, string>>;
	/** A text is UTF-8; `null` = none. */
	body: Uint8Array | string | null;
}

export interface PublicRequest {
	method: string;
	path: string;
	headers: Readonly<Record<string, string | undefined>>;
	/** Reads the form: a page without a form does not wait for one. Throws as `ReadBody`. Absent = none. */
	body?(): Promise<Uint8Array | null>;
	ip: string | null;
}

export interface PublicHandler {
	(request: PublicRequest): Promise<HttpResponse | null>;
	/** The same response without a promise; null: this request needs the asynchronous way. Never throws. */
	synchronously?(request: PublicRequest): HttpResponse | null;
}
