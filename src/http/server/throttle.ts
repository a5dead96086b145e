import { type Clock, type Micros, microsPerSecond, steadyOf } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import type { Principal } from './authenticate.js';

interface ThrottleOptions {
	perSecond: number;
	/** Requests at once after a pause; less than 1 counts as 1, or every request would be refused. */
	burst: number;
	clock: Clock;
}

/** Takes one request of a token's name. 0 = allowed, else the seconds until it would be. */
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
		// Put at the end: the first of the map are those that have rested longest.
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
