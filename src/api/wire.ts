/**
 * One HTTP exchange with a deployment as plain data, for code that works on the wire itself: `api`, `smoke`, the
 * server.
 */

/** A request below the base URL. The connection adds its token unless `token` is given. */
export interface WireRequest {
	method: string;
	/** Begins with `/`; may have a query. */
	path: string;
	headers?: Readonly<Record<string, string>>;
	/** The body, unchanged; a text is UTF-8. */
	body?: string | Uint8Array;
	/** Another token than the connection's own; `null` sends none. */
	token?: string | null;
	signal?: AbortSignal;
}

export interface WireResponse {
	status: number;
	/** Names in lower case; repeated ones joined by `, `. */
	headers: Readonly<Record<string, string>>;
	body: Uint8Array;
	durationMs: number;
}

/**
 * Makes one exchange, without retries. Throws `ApiError` `network` without an answer, `bad_answer` for one too large.
 */
export type WireExchange = (request: WireRequest) => Promise<WireResponse>;
