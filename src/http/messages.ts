export interface HttpRequest {
	method: string;
	target: string;
	headers: Readonly<Record<string, string | undefined>>;
	/** A function reads it on demand: a refused request takes no memory for its body. */
	body: Uint8Array | ReadBody | null;
	readonly signal?: AbortSignal;
}

/** `null` = there is none. Throws `too_large`, `unavailable` (no memory), `network` (the client left). */
export type ReadBody = (maxBytes: number, timeoutMs?: number, kind?: 'file') => Promise<Uint8Array | null>;

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
