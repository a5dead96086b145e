import { homedir } from 'node:os';
import { getSystemErrorMap } from 'node:util';

/** HTTP status by error code. If codes share a status, the client usually assumes the first one listed. */
export const errorStatuses = {
	invalid: 400,
	parse_error: 400,
	not_authenticated: 401,
	permission_denied: 403,
	not_found: 404,
	method_not_allowed: 405,
	conflict: 409,
	too_large: 413,
	unsupported_media_type: 415,
	/** An earlier request with another body has used the idempotency key. */
	unprocessable: 422,
	throttled: 429,
	server_error: 500,
	unavailable: 503,
	storage_full: 507,
	storage_failed: 500,
	/** The request succeeded, but the disk still contains the deleted data. */
	not_overwritten: 500,
	/** No answer: connection refused or cut, TLS or proxy error, timeout. */
	network: 502,
	bad_answer: 502,
} as const;

export type ApiErrorCode = keyof typeof errorStatuses;

export interface FieldError {
	code: string;
	message: string;
}

/** Errors by field name. The errors of a list item are nested below its index, as in DRF (api-decisions 1). */
export interface FieldErrors {
	[field: string]: readonly FieldError[] | FieldErrors;
}

export const nonFieldErrors = 'non_field_errors';

/** The home folder of a system user often does not exist. mailctl does not create it. */
class HomeMissing extends Error {}

export function assertNotHome(path: string): void {
	if (path === homedir()) throw new HomeMissing(`the home folder ${path} does not exist`);
}

export function codeOf(error: unknown): string {
	return error instanceof Error && 'code' in error ? String(error.code) : '';
}

export function systemReason(error: unknown): string {
	if (error instanceof HomeMissing) return error.message;
	if (!(error instanceof Error) || !('code' in error)) return String(error);
	const errno = 'errno' in error ? Number(error.errno) : Number.NaN;
	return getSystemErrorMap().get(errno)?.[1] ?? String(error.code);
}

export function tlsReason(text: string): string {
	return /error:[0-9A-F]{8}:[^:\n]*:[^:\n]*:([^:\n]+)/.exec(text)?.[1] ?? text;
}

export function whyUnreachable(code: string): string | null {
	return unreachable.get(code) ?? null;
}

const unreachable: ReadonlyMap<string, string> = new Map([
	['ECONNREFUSED', 'connection refused'],
	['ECONNRESET', 'connection reset'],
	['ENOTFOUND', 'unknown host'],
	['EAI_AGAIN', 'the name server does not answer'],
	['ETIMEDOUT', 'connection timed out'],
	['EHOSTUNREACH', 'no route to the host'],
	['ENETUNREACH', 'no route to the network'],
]);

interface ApiErrorOptions {
	fields?: FieldErrors | null;
	http?: { status: number; method: string; path: string } | null;
	retryAfterMs?: number | null;
	/** The client sent the request but got no complete answer, so the service may have processed it. */
	unanswered?: boolean;
	scopes?: Scopes | null;
	cause?: unknown;
}

export interface Scopes {
	accepted: readonly (readonly string[])[];
	held: readonly string[];
}

export class ApiError extends Error {
	override readonly name = 'ApiError';
	readonly code: ApiErrorCode;
	readonly fields: FieldErrors | null;
	readonly http: { status: number; method: string; path: string } | null;
	readonly retryAfterMs: number | null;
	readonly unanswered: boolean;
	readonly scopes: Scopes | null;

	constructor(code: ApiErrorCode, message: string, options: ApiErrorOptions = {}) {
		super(message, 'cause' in options ? { cause: options.cause } : undefined);
		this.code = code;
		this.fields = options.fields ?? null;
		this.http = options.http ?? null;
		this.retryAfterMs = options.retryAfterMs ?? null;
		this.unanswered = options.unanswered ?? false;
		this.scopes = options.scopes ?? null;
	}

	with({
		code = this.code,
		message = this.message,
		...changed
	}: ApiErrorOptions & { code?: ApiErrorCode; message?: string }): ApiError {
		const { fields, http, retryAfterMs, unanswered, scopes, cause } = this;
		const own = { fields, http, retryAfterMs, unanswered, scopes, ...(cause !== undefined && { cause }) };
		return new ApiError(code, message, { ...own, ...changed });
	}
}

const notCarriedOut: ReadonlySet<number> = new Set([501, 505, 507]);

/** True if the service may have carried out the write. False after 429, and after 503 with Retry-After. */
export function mayHaveHappened({ code, unanswered, http, retryAfterMs }: ApiError): boolean {
	if (unanswered) return true;
	if (http === null) return code === 'bad_answer';
	if (http.method === 'GET') return false;
	if (http.status === 503 && retryAfterMs !== null) return false;
	if (http.status === 408 || http.status < 300) return true;
	return http.status >= 500 && !notCarriedOut.has(http.status);
}

export function isForbidden(error: unknown): boolean {
	return error instanceof ApiError && error.code === 'permission_denied';
}

export function notFound(): ApiError {
	return new ApiError('not_found', 'Not found.');
}

/** The message names the first field error, so that a log line is useful without the fields. */
export function invalid(fields: FieldErrors): ApiError {
	const first = listFieldErrors(fields)[0];
	return new ApiError('invalid', first ? `${first.path}: ${first.message}` : 'Invalid input.', { fields });
}

export function listFieldErrors(
	fields: FieldErrors,
	prefix = '',
): { path: string; code: string; message: string }[] {
	return Object.entries(fields).flatMap(([key, value]) => {
		const path = prefix === '' ? key : `${prefix}.${key}`;
		return isErrorList(value) ? value.map((error) => ({ path, ...error })) : listFieldErrors(value, path);
	});
}

export function errorBody(fields: FieldErrors): Record<string, unknown> {
	return Object.fromEntries(
		Object.entries(fields).map(([key, value]) => [
			key,
			isErrorList(value) ? value.map((error) => error.message) : errorBody(value),
		]),
	);
}

function isErrorList(value: readonly FieldError[] | FieldErrors): value is readonly FieldError[] {
	return Array.isArray(value);
}

/** `busy_elsewhere`: another process uses the older schema. */
export type StoreErrorCode =
	| 'not_a_database'
	| 'bad_url'
	| 'newer_schema'
	| 'locked'
	| 'disk_full'
	| 'io'
	| 'damaged'
	| 'read_only'
	| 'not_overwritten'
	| 'busy_elsewhere'
	| 'key'
	| 'denied'
	| 'unreachable'
	| 'stopped'
	| 'moved';

export class StoreError extends Error {
	override readonly name: string = 'StoreError';
	readonly code: StoreErrorCode;
	constructor(code: StoreErrorCode, message: string, options: { cause?: unknown } = {}) {
		super(message, options);
		this.code = code;
	}
}

/** Texts for API clients, because the store's own messages may contain file names. */
const storeFaults: Readonly<Partial<Record<StoreErrorCode, readonly [ApiErrorCode, string]>>> = {
	locked: ['unavailable', 'The database is busy. Try again.'],
	unreachable: ['unavailable', 'The database of the service cannot be reached. Try again.'],
	stopped: ['unavailable', 'The service is being stopped. Try again.'],
	denied: ['storage_failed', 'The database refuses the user of the service.'],
	key: ['unavailable', 'The service lacks the key that decrypts its secrets.'],
	disk_full: ['storage_full', 'The disk of the service is full.'],
	io: ['storage_failed', 'The disk of the service failed.'],
	damaged: ['storage_failed', 'The database of the service is damaged.'],
	read_only: ['unavailable', 'The database of the service is read-only. Try again.'],
	moved: ['storage_failed', 'The database of the service was moved to another place.'],
	not_a_database: ['storage_failed', 'The database file of the service is not a database.'],
	not_overwritten: [
		'not_overwritten',
		'The request is done, but the disk of the service still holds the deleted data. To overwrite this data, repeat the request.',
	],
};

export function apiErrorOf(code: StoreErrorCode, cause: unknown): ApiError | null {
	const fault = storeFaults[code];
	return fault === undefined ? null : new ApiError(...fault, { cause });
}

export class MissingExtension extends Error {
	override readonly name = 'MissingExtension';
	readonly extension: string;
	readonly wanted: string | null;
	constructor(extension: string, wanted: string | null = null) {
		const what = wanted ?? `the extension "${extension}"`;
		super(`this service does not support ${what}: only a mailctl server or a local database does`);
		this.extension = extension;
		this.wanted = wanted;
	}
}

export class NoSenders extends Error {
	override readonly name = 'NoSenders';
	constructor() {
		super('this service does not list senders');
	}
}
