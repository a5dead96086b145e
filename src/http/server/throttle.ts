/** How often a token may ask: a bucket each, refilled steadily. */
import { type Clock, type Micros, microsPerSecond } from '../../api/datetime.js';

export interface ThrottleOptions {
	/** Requests a second, for long. */
	perSecond: number;
	/** Requests at once after a rest; less than 1 is taken for 1, or nobody would ever get in. */
	burst: number;
	clock: Clock;
}

/** Takes one request of a token's name. 0 = allowed, else the seconds until it would be. */
export type Throttle = (name: string) => number;

/** Buckets that are full again are forgotten, so that memory follows the tokens in use. */
export function createThrottle({ perSecond, clock, ...options }: ThrottleOptions): Throttle {
	const burst = Math.max(1, options.burst);
	const buckets = new Map<string, { tokens: number; at: Micros }>();
	const refilled = (bucket: { tokens: number; at: Micros }, now: Micros) =>
		Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) / microsPerSecond) * perSecond);
	return (name) => {
		const now = clock.now();
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
