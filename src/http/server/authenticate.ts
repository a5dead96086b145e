import { createHash } from 'node:crypto';
import { type Clock, type Micros, microsPerSecond, steadyOf } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import { type Operation, type Scope, scopes } from '../../api/operations.js';
import type { HttpRequest } from '../wire.js';
import { headerNames } from '../wire.js';

export interface Principal {
	name: string;
	scopes: readonly Scope[];
}

export type Authenticate = (token: string) => Promise<Principal | null>;

interface AuthenticatorOptions {
	findToken(sha256: string): Promise<{ name: string; scopes: readonly string[] } | null>;
	clock: Clock;
}

/** The server refuses a revoked token after one second at the latest. */
const keepFor: Micros = microsPerSecond;
/** Limits the memory that wrong tokens can take. */
const maxKept = 10_000;
const maxTokenLength = 512;

interface Kept {
	until: Micros;
	principal: Promise<Principal | null>;
}

/** Looks up and compares only hashes, so that response times reveal nothing about valid tokens. */
export function createAuthenticator({ findToken, clock }: AuthenticatorOptions): Authenticate {
	const kept = new Map<string, Kept>();
	const ask = async (sha256: string): Promise<Principal | null> => {
		const found = await findToken(sha256);
		return found === null
			? null
			: { name: found.name, scopes: scopes.filter((one) => found.scopes.includes(one)) };
	};
	return async (token) => {
		if (token === '' || token.length > maxTokenLength) return null;
		const key = createHash('sha256').update(token).digest('hex');
		const now = steadyOf(clock);
		const known = kept.get(key);
		if (known !== undefined && known.until > now) return known.principal;
		const principal = ask(key);
		kept.delete(key);
		makeRoom(kept, now);
		kept.set(key, { until: now + keepFor, principal });
		principal.catch(() => kept.delete(key));
		return principal;
	};
}

function makeRoom(kept: Map<string, Kept>, now: Micros): void {
	for (const [key, { until }] of kept) {
		if (until > now && kept.size < maxKept) return;
		kept.delete(key);
	}
}

export async function authenticated(
	authenticate: Authenticate,
	headers: HttpRequest['headers'],
): Promise<Principal> {
	const token = headers[headerNames.token.toLowerCase()];
	if (token === undefined) throw notAuthenticated('Authentication credentials were not provided.');
	return identified(authenticate, token);
}

export async function identified(authenticate: Authenticate, token: string): Promise<Principal> {
	const principal = await authenticate(token);
	if (principal === null) throw notAuthenticated('Invalid token.');
	return principal;
}

export function bearerOf(headers: HttpRequest['headers']): string | undefined {
	return /^Bearer +(\S+) *$/i.exec(headers['authorization'] ?? '')?.[1];
}

export function assertAllowed({ scopes: held }: Principal, accepted: readonly (readonly Scope[])[]): void {
	const isGranted = (needed: readonly Scope[]) => needed.every((scope) => held.includes(scope));
	if (held.includes('admin') || accepted.some(isGranted)) return;
	throw new ApiError('permission_denied', 'You do not have permission to perform this action.', {
		scopes: { accepted, held },
	});
}

export function seesAll({ scopes }: Principal, { method }: Operation): boolean {
	return scopes.includes('admin') || (method === 'GET' && scopes.includes('read'));
}

function notAuthenticated(message: string): ApiError {
	return new ApiError('not_authenticated', message);
}

interface ThrottleOptions {
	perSecond: number;
	burst: number;
	clock: Clock;
}

export type Throttle = (name: string) => number;

export function createThrottle({ perSecond, clock, ...options }: ThrottleOptions): Throttle {
	const burst = Math.max(1, options.burst);
	const buckets = new Map<string, { tokens: number; at: Micros }>();
	const refilled = (bucket: { tokens: number; at: Micros }, now: Micros) =>
		Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) / microsPerSecond) * perSecond);
	return (name) => {
		const now = steadyOf(clock);
		const bucket = buckets.get(name);
		const tokens = bucket === undefined ? burst : refilled(bucket, now);
		if (bucket === undefined) forgetFull(buckets, (other) => refilled(other, now) >= burst);
		buckets.delete(name);
		buckets.set(name, { tokens: tokens >= 1 ? tokens - 1 : tokens, at: now });
		return tokens >= 1 ? 0 : (1 - tokens) / perSecond;
	};
}

function forgetFull<B>(buckets: Map<string, B>, isFull: (bucket: B) => boolean): void {
	for (const [name, bucket] of buckets) {
		if (!isFull(bucket)) return;
		buckets.delete(name);
	}
}

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
