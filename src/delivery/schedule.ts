/** When a deferred message is tried again, and when it is given up. */
import { type Micros, microsPerDay, microsPerSecond } from '../api/datetime.js';

export type NextAttempt = { kind: 'retry'; due_at: Micros } | { kind: 'give_up' };

const firstDelay = 5 * 60 * microsPerSecond;
const longestDelay = 4 * 3_600 * microsPerSecond;
const jitter = 0.1;
/** RFC 5321 s.4.5.4.1 asks for 4 to 5 days. */
const giveUpAfter = 4 * microsPerDay;
/** A mailing staged for days, or held by a paused queue, is old before its first attempt. */
const leastAttempts = 3;

/**
 * 5 min, doubling to 4 h, each ±10 % so that what failed together does not come back together. `attempts` counts the
 * one that just failed; `random` is in [0, 1). Given up 4 days after creation, but never before the third attempt;
 * the last attempt is at the fourth day's end, not hours short of it.
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
	const delay = Math.min(firstDelay * 2 ** Math.min(Math.max(c.attempts, 1) - 1, 20), longestDelay);
	const due = Math.round(c.now + delay * (1 - jitter + 2 * jitter * c.random()));
	return { kind: 'retry', due_at: isOld ? due : Math.min(due, Math.max(end, c.now + 1)) };
}
