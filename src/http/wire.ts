import {
	type ApiError,
	type ApiErrorCode,
	errorBody,
	errorStatuses,
	listFieldErrors,
	type Scopes,
} from '../api/errors.js';
import { scopes } from '../api/operations.js';

export const headerNames = {
	token: 'X-Secure-Token',
	/** Contains the error's code, so that scripts need not parse English messages (api-decisions 1). */
	errorCode: 'X-Error-Code',
	campaign: 'X-Campaign-Id',
	submission: 'X-Submission-Id',
	idempotencyKey: 'Idempotency-Key',
	idempotencyReplayed: 'Idempotency-Replayed',
	retryAfter: 'Retry-After',
	next: 'X-Next',
	/** In a 403: sets of scopes, separated by commas. The token needs all scopes of one set. */
	acceptedScopes: 'X-Accepted-Scopes',
	tokenScopes: 'X-Token-Scopes',
} as const;

export function codeOf(status: number): ApiErrorCode {
	if (status === 410) return 'not_found';
	if (status === 414 || status === 431) return 'too_large';
	// mailctl's server never sends 502, so a gateway sent it. Skip the code `network`, which has the same status.
	const own = status === 502 ? undefined : codes.find((code) => errorStatuses[code] === status);
	return own ?? (status >= 500 ? 'server_error' : 'invalid');
}

const codes = Object.keys(errorStatuses) as ApiErrorCode[];

/** Returns the body that DRF would send (api-decisions 1–7). */
export function bodyOf(error: ApiError): Record<string, unknown> {
	return error.fields === null ? { detail: error.message } : errorBody(error.fields);
}

export function errorCodeOf(error: ApiError): string {
	const first = error.fields === null ? undefined : listFieldErrors(error.fields)[0];
	return first?.code ?? error.code;
}

export function scopeHeaders({ accepted, held }: Scopes): Record<string, string> {
	return {
		[headerNames.acceptedScopes]: accepted.map((set) => set.join(' ')).join(', '),
		[headerNames.tokenScopes]: held.join(' '),
	};
}

export function scopesIn(headers: Readonly<Record<string, string>>): Scopes | null {
	const accepted = headers[headerNames.acceptedScopes.toLowerCase()];
	const held = headers[headerNames.tokenScopes.toLowerCase()];
	if (accepted === undefined || held === undefined) return null;
	const found = { accepted: accepted.split(',').map(wordsOf), held: wordsOf(held) };
	const all = [...found.accepted.flat(), ...found.held];
	const isOurs = found.accepted.every((set) => set.length > 0) && all.every((word) => known.has(word));
	return isOurs ? found : null;
}

const known: ReadonlySet<string> = new Set(scopes);

export function neededScopes(accepted: readonly (readonly string[])[]): string {
	const isAdmin = accepted.some((set) => set.includes('admin'));
	const sets = accepted.map((set) => set.join(' and '));
	return `The token needs the scope ${isAdmin ? 'admin' : [...sets, 'admin'].join(', or ')}`;
}

export function refusedFor(said: string, { accepted, held }: Scopes): string {
	return `${said} ${neededScopes(accepted)}; it has ${held.length === 0 ? 'none' : held.join(' and ')}.`.trim();
}

function wordsOf(text: string): string[] {
	return text.split(' ').filter((word) => word !== '');
}

export interface HttpRequest {
	method: string;
	target: string;
	headers: Readonly<Record<string, string | undefined>>;
	/** A `ReadBody` reads the body on demand, so that a refused request takes no memory. */
	body: Uint8Array | ReadBody | null;
	readonly signal?: AbortSignal;
}

/** Null if there is no body. Throws `too_large`, `unavailable` (no memory), `network` (the client disconnected). */
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
	/** A function, so that a page without a form does not wait for a body. */
	body?(): Promise<Uint8Array | null>;
	ip: string | null;
}

export interface PublicHandler {
	(request: PublicRequest): Promise<HttpResponse | null>;
	/** Null if only the asynchronous call above can answer. Never throws. */
	synchronously?(request: PublicRequest): HttpResponse | null;
}
