/** A request and its answer as plain data: what handlers take and give, with sockets or without. */

/** One request as it came. */
export interface HttpRequest {
	/** Upper case. */
	method: string;
	/** Path and query as sent. */
	target: string;
	/** Names in lower case; repeated ones joined by `, `. */
	headers: Readonly<Record<string, string | undefined>>;
	/** A function reads it when it is wanted: who is not let in has not filled the memory. */
	body: Uint8Array | ReadBody | null;
	/** Aborted when the client has left. */
	signal?: AbortSignal;
	/** Names the request in logs; one is made when absent. */
	id?: string;
}

/** Reads a body of at most so many octets; `null` = there is none. Throws `ApiError` `too_large`, `unavailable`, `network`. */
export type ReadBody = (maxBytes: number) => Promise<Uint8Array | null>;

/** One answer. `Content-Length` is added by whoever writes it to a socket, unless it is there. */
export interface HttpResponse {
	status: number;
	headers: Readonly<Record<string, string>>;
	/** A text is UTF-8; `null` = none. */
	body: Uint8Array | string | null;
	/** For the log; never sent. */
	about?: About;
}

/** What a log may say of a request: no token, no query, no body. */
export interface About {
	/** The path when it holds nothing secret, else its shape. */
	path: string;
	/** Name of the token; null = none was accepted. */
	token: string | null;
	/** Code of the refusal. */
	error: string | null;
}

/** Answers everything, errors too; never throws. */
export type Handler = (request: HttpRequest) => Promise<HttpResponse>;

/** A request for a page that mails link to. */
export interface PublicRequest {
	method: string;
	/** Without the query; not decoded. */
	path: string;
	query: URLSearchParams;
	headers: Readonly<Record<string, string | undefined>>;
	body: Uint8Array | null;
	ip: string | null;
}

/** Null = none of its pages. */
export interface PublicHandler {
	(request: PublicRequest): Promise<HttpResponse | null>;
	/** The same answer where nothing has to be waited for; null: ask the usual way. Never throws. Absent: never. */
	atOnce?(request: PublicRequest): HttpResponse | null;
}
