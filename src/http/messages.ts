/** A request and its response as plain data. */

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
 * Reads at most `maxBytes` within the time; `null` = there is none. A `file` waits for earlier ones of its
 * client. Throws `too_large`, `unavailable` (no memory), `network` (the client left).
 */
export type ReadBody = (maxBytes: number, timeoutMs?: number, kind?: 'file') => Promise<Uint8Array | null>;

/** `Content-Length` is added when it is written to a socket. */
export interface HttpResponse {
	status: number;
	headers: Readonly<Record<string, string>>;
	body: Uint8Array | string | null;
}

export interface PublicRequest {
	method: string;
	path: string;
	headers: Readonly<Record<string, string | undefined>>;
	/** A page without a form does not wait for one. */
	body?(): Promise<Uint8Array | null>;
	ip: string | null;
}

export interface PublicHandler {
	(request: PublicRequest): Promise<HttpResponse | null>;
	/** Null: this request needs the asynchronous way. Never throws. */
	synchronously?(request: PublicRequest): HttpResponse | null;
}
