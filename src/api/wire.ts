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
