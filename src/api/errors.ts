/**
 * One error for everything the service refuses or cannot do, whichever implementation of `Api` refused it.
 * The HTTP server maps `code` to a status and `fields` to DRF's body; the command line maps `code` to an exit code.
 */

/** Why a call failed, whoever answered it; one HTTP status each. */
export type ApiErrorCode =
	| 'invalid' // 400 with field errors
	| 'parse_error' // 400, the body is no JSON
	| 'not_authenticated' // 401
	| 'permission_denied' // 403
	| 'not_found' // 404
	| 'method_not_allowed' // 405
	| 'conflict' // 409
	| 'too_large' // 413
	| 'unsupported_media_type' // 415
	| 'unprocessable' // 422, an idempotency key used for another body
	| 'throttled' // 429
	| 'server_error' // 5xx
	| 'unavailable' // 503, the database is locked too long
	| 'storage_full' // 507
	| 'network' // no answer: refused, cut, TLS, proxy, timeout
	| 'bad_answer'; // an answer that is not the contract's

/** One complaint: DRF's text for people, its code for scripts (`required`, `blank`, `unique`, `invalid`, …). */
export interface FieldError {
	code: string;
	message: string;
}

/** Complaints by field; items of a list are keyed by index, nested as DRF nests them (api-decisions 1). */
export interface FieldErrors {
	[field: string]: readonly FieldError[] | FieldErrors;
}

/** The field name of complaints that concern several fields or the whole body. */
export const nonFieldErrors = 'non_field_errors';

/** What is known of a failure beyond its code and message. */
export interface ApiErrorOptions {
	fields?: FieldErrors;
	/** Where a remote answer came from; absent on the embedded engine. */
	http?: { status: number; method: string; path: string };
	/** What the service asked to wait, in milliseconds. */
	retryAfterMs?: number;
	/** The request left and no whole answer came: it may have been carried out. */
	unanswered?: boolean;
	cause?: unknown;
}

/** A call that was refused or not answered. `message` holds no token, password or body. */
export class ApiError extends Error {
	override readonly name = 'ApiError';
	readonly code: ApiErrorCode;
	readonly fields: FieldErrors | null;
	readonly http: { status: number; method: string; path: string } | null;
	readonly retryAfterMs: number | null;
	readonly unanswered: boolean;

	constructor(code: ApiErrorCode, message: string, options: ApiErrorOptions = {}) {
		super(message, 'cause' in options ? { cause: options.cause } : undefined);
		this.code = code;
		this.fields = options.fields ?? null;
		this.http = options.http ?? null;
		this.retryAfterMs = options.retryAfterMs ?? null;
		this.unanswered = options.unanswered ?? false;
	}
}

/** `Not found.` as DRF says it (api-decisions 4). */
export function notFound(): ApiError {
	return new ApiError('not_found', 'Not found.');
}

/** A 400 whose message names the first complaint, so that a log line says something without the fields. */
export function invalid(fields: FieldErrors): ApiError {
	const first = listFieldErrors(fields)[0];
	return new ApiError('invalid', first ? `${first.path}: ${first.message}` : 'Invalid input.', { fields });
}

/** Flattens complaints to `to.1: Enter a valid email address.` order, for people and for codes. */
export function listFieldErrors(
	fields: FieldErrors,
	prefix = '',
): { path: string; code: string; message: string }[] {
	return Object.entries(fields).flatMap(([key, value]) => {
		const path = prefix === '' ? key : `${prefix}.${key}`;
		return isErrorList(value) ? value.map((error) => ({ path, ...error })) : listFieldErrors(value, path);
	});
}

/** DRF's error body: texts only (api-decisions 1). */
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
