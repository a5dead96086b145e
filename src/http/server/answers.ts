/** Answers as HTTP has them: records and refusals, in DRF's spelling of JSON. */
import { ApiError } from '../../api/errors.js';
import { bodyOf, errorCodeOf, headerNames, statusOf } from '../errors.js';
import type { HttpResponse } from '../messages.js';

export type Headers = Record<string, string>;

const jsonHeaders: Headers = {
	'Content-Type': 'application/json',
	'Cache-Control': 'no-store',
	'X-Content-Type-Options': 'nosniff',
};

/** DRF's JSON: compact, UTF-8 as it is, but the two line ends that JavaScript once stumbled over. */
export function json(status: number, value: unknown, headers: Headers = {}): HttpResponse {
	const body = JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
	return { status, headers: { ...jsonHeaders, ...headers }, body };
}

/** No body and nothing that describes one. */
export function empty(status: number, headers: Headers = {}): HttpResponse {
	const { 'Content-Type': _, ...rest } = jsonHeaders;
	return { status, headers: { ...rest, ...headers }, body: null };
}

/** The answer to HEAD: what GET would say, without the body. */
export function headOf(response: HttpResponse): HttpResponse {
	if (response.body === null) return response;
	const length = String(Buffer.byteLength(response.body));
	return { ...response, headers: { ...response.headers, 'Content-Length': length }, body: null };
}

/** An error of the Api as status, headers and body. */
export function refusal(error: ApiError, headers: Headers = {}): HttpResponse {
	const { code } = error;
	const wait = code === 'throttled' || code === 'unavailable' ? retryAfter(error) : {};
	const challenge = code === 'not_authenticated' ? { 'WWW-Authenticate': headerNames.token } : {};
	return json(statusOf(code), bodyOf(error), {
		[headerNames.errorCode]: headerText(errorCodeOf(error)),
		...wait,
		...challenge,
		...headers,
	});
}

/** A refusal of the protocol itself, for which the Api has no code. */
export function protocolError(status: number, code: string, detail: string): HttpResponse {
	return json(status, { detail }, { [headerNames.errorCode]: code });
}

/**
 * The error as the Api would have said it; null for a bug. A store's failures are known by name, for this layer knows
 * no store. Their messages name files, so others take their place.
 */
export function asApiError(error: unknown): ApiError | null {
	if (error instanceof ApiError) return error;
	if (!(error instanceof Error)) return null;
	const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
	if (error.name === 'StoreError' && code === 'locked')
		return new ApiError('unavailable', 'The database is busy. Try again.', { cause: error });
	if ((error.name === 'StoreError' && code === 'disk_full') || fullDisk.has(code))
		return new ApiError('storage_full', 'The disk of the service is full.', { cause: error });
	return null;
}

const fullDisk = new Set(['ENOSPC', 'EDQUOT', 'SQLITE_FULL']);

/** Seconds, at least one: what rounds to 0 would be a busy loop. */
function retryAfter({ retryAfterMs }: ApiError): Headers {
	return { [headerNames.retryAfter]: String(Math.max(1, Math.ceil((retryAfterMs ?? 1000) / 1000))) };
}

// Codes are ours, but a header must hold no line end whatever happens.
function headerText(text: string): string {
	return text.replace(/[^\x21-\x7e]/g, '_');
}
