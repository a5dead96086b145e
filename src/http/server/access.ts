/** Whether a request may be answered: who asks, whether he may, whether he asked too often. Texts are DRF's. */
import { ApiError } from '../../api/errors.js';
import { headerNames } from '../errors.js';
import type { HttpRequest } from '../messages.js';
import type { Scope } from '../routes.js';
import type { Authenticate, Principal } from './authenticate.js';
import type { Throttle } from './throttle.js';

/** Whom `X-Secure-Token` names. Throws `not_authenticated` for a missing or unknown one (api-decisions 3). */
export async function authenticated(
	authenticate: Authenticate,
	headers: HttpRequest['headers'],
): Promise<Principal> {
	const token = headers[headerNames.token.toLowerCase()];
	if (token === undefined) throw notAuthenticated('Authentication credentials were not provided.');
	return identified(authenticate, token);
}

/** Whom a token belongs to. Throws `not_authenticated`. */
export async function identified(authenticate: Authenticate, token: string): Promise<Principal> {
	const principal = await authenticate(token);
	if (principal === null) throw notAuthenticated('Invalid token.');
	return principal;
}

/** The token of `Authorization: Bearer`, which Prometheus sends. */
export function bearerOf(headers: HttpRequest['headers']): string | undefined {
	return /^Bearer +(\S+) *$/i.exec(headers['authorization'] ?? '')?.[1];
}

/** Throws `permission_denied` unless all that is needed is granted. */
export function assertAllowed({ scopes }: Principal, needed: readonly Scope[]): void {
	if (scopes.includes('admin') || needed.every((scope) => scopes.includes(scope))) return;
	throw new ApiError('permission_denied', 'You do not have permission to perform this action.');
}

/** Throws `throttled` with the whole seconds to wait (api-decisions 6). */
export function assertNotTooOften(throttle: Throttle | undefined, { name }: Principal): void {
	const seconds = throttle?.(name) ?? 0;
	if (seconds <= 0) return;
	const whole = Math.ceil(seconds);
	throw new ApiError(
		'throttled',
		`Request was throttled. Expected available in ${whole} second${whole === 1 ? '' : 's'}.`,
		{ retryAfterMs: whole * 1000 },
	);
}

/** 405; the header `Allow` is the place's. */
export function methodNotAllowed(method: string): ApiError {
	return new ApiError('method_not_allowed', `Method "${method}" not allowed.`);
}

function notAuthenticated(message: string): ApiError {
	return new ApiError('not_authenticated', message);
}
