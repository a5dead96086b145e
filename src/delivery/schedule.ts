/** When a deferred message is tried again, and when it fails for good. */
import { backoff } from '../api/backoff.js';
import { type Micros, microsPerDay, microsPerSecond } from '../api/datetime.js';

export type NextAttempt = { kind: 'retry'; due_at: Micros } | { kind: 'give_up' };

const delays = { first: 5 * 60 * microsPerSecond, longest: 4 * 3_600 * microsPerSecond };
const jitter = 0.1;
/** RFC 5321 s.4.5.4.1 asks for 4 to 5 days. */
const giveUpAfter = 4 * microsPerDay;
/** A campaign staged for days, or held by a paused queue, is old before its first attempt. */
const leastAttempts = 3;

/**
 * 5 min, doubling to 4 h, each ±10 % so that messages that failed together do not return together. `attempts` counts
 * the one that just failed; `random` is in [0, 1). The message fails 4 days after creation, but never before the third
 * attempt. The last attempt is at the end of the fourth day, not hours before it.
 */
export function nextAttempt(c: {
	attempts: number;
	createdAt: Micros;
	now: Micros;
	random: () => number;
}): NextAttempt {
	const end = c.createdAt + giveUpAfter;
	const isOld = c.now >= end;
	if (isOld && c.attempts >= leastAttempts) return { kind: 'give_up' };
	const delay = backoff(delays, Math.max(c.attempts, 1));
	const due = Math.round(c.now + delay * (1 - jitter + 2 * jitter * c.random()));
	return { kind: 'retry', due_at: isOld ? due : Math.min(due, Math.max(end, c.now + 1)) };
}
