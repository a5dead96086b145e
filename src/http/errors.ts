/** Errors and headers on the wire: one table from code to status, read in both directions. */
import { type ApiError, type ApiErrorCode, errorBody, listFieldErrors } from '../api/errors.js';

/** Header names as we write them; node gives incoming ones in lower case. */
export const headerNames = {
	token: 'X-Secure-Token',
	/** The first field error's code (`required`, `unique`, …), so that scripts need not read English (api-decisions 1). */
	errorCode: 'X-Error-Code',
	/** The campaign of a BULK call (api-decisions 28). */
	campaign: 'X-Campaign-Id',
	/** The submission of a send call; ours. */
	submission: 'X-Submission-Id',
	idempotencyKey: 'Idempotency-Key',
	idempotencyReplayed: 'Idempotency-Replayed',
	retryAfter: 'Retry-After',
} as const;

const statuses: Readonly<Record<ApiErrorCode, number>> = {
	invalid: 400,
	parse_error: 400,
	not_authenticated: 401,
	permission_denied: 403,
	not_found: 404,
	method_not_allowed: 405,
	conflict: 409,
	too_large: 413,
	unsupported_media_type: 415,
	unprocessable: 422,
	throttled: 429,
	server_error: 500,
	unavailable: 503,
	storage_full: 507,
	storage_failed: 500,
	not_overwritten: 500,
	network: 502,
	bad_answer: 502,
};

/** The status of an error's answer. */
export function statusOf(code: ApiErrorCode): number {
	return statuses[code];
}

/** The code of a status; any other 4xx is `invalid`, any other 5xx `server_error`. */
export function codeOf(status: number): ApiErrorCode {
	switch (status) {
		case 401:
			return 'not_authenticated';
		case 403:
			return 'permission_denied';
		case 404:
		case 410:
			return 'not_found';
		case 405:
			return 'method_not_allowed';
		case 409:
			return 'conflict';
		case 413:
		case 414:
		case 431:
			return 'too_large';
		case 415:
			return 'unsupported_media_type';
		case 422:
			return 'unprocessable';
		case 429:
			return 'throttled';
		case 503:
			return 'unavailable';
		case 507:
			return 'storage_full';
		default:
			return status >= 500 ? 'server_error' : 'invalid';
	}
}

/** DRF's body: errors by field, else `detail` (api-decisions 1–7). */
export function bodyOf(error: ApiError): Record<string, unknown> {
	return error.fields === null ? { detail: error.message } : errorBody(error.fields);
}

/** For the header `X-Error-Code`. */
export function errorCodeOf(error: ApiError): string {
	const first = error.fields === null ? undefined : listFieldErrors(error.fields)[0];
	return first?.code ?? error.code;
}
