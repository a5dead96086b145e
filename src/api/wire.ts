/** One HTTP exchange with a deployment as plain data, for what looks at the wire itself: `api`, `smoke`, the server. */

/** A request below the base URL. The connection adds its token unless `token` says otherwise. */
export interface WireRequest {
	/** Upper case. */
	method: string;
	/** Begins with `/`; may have a query. */
	path: string;
	headers?: Readonly<Record<string, string>>;
	/** Sent as it is; a text is UTF-8. */
	body?: string | Uint8Array;
	/** Another token than the connection's own; `null` sends none. */
	token?: string | null;
	signal?: AbortSignal;
}

/** Whatever was answered, redirects and errors too. */
export interface WireResponse {
	status: number;
	/** Names in lower case; repeated ones joined by `, `. */
	headers: Readonly<Record<string, string>>;
	/** Decoded of any content encoding. */
	body: Uint8Array;
	durationMs: number;
}

/** Does one exchange, without retries. Throws `ApiError` `network` when there is no answer, `bad_answer` for one too large. */
export type Exchange = (request: WireRequest) => Promise<WireResponse>;
