/** What was sent, by limit and slice of time. */
import type { Micros } from '../../api/datetime.js';
import { windowOf } from '../../engine/rules/limits.js';
import type { Sql } from './sql.js';

/**
 * So many rows a window. What is sent is counted for one slice longer than the slice it was sent in: the clocks of two
 * processes are at least a millisecond apart, and three workers were seen to send 61 where 60 were allowed.
 */
const slices = 128;

/** Adds them, and forgets what has left its window. */
export function writeUses(sql: Sql, uses: readonly { key: string; at: Micros }[], now: Micros): void {
	// limit_uses_by_end
	sql.run('DELETE FROM limit_uses WHERE until <= ?', now);
	const counts = new Map<string, { key: string; until: Micros; count: number }>();
	for (const { key, at } of uses) {
		const until = endOf(key, at);
		const counted = counts.get(`${until} ${key}`) ?? { key, until, count: 0 };
		counted.count += 1;
		counts.set(`${until} ${key}`, counted);
	}
	for (const { key, until, count } of counts.values()) {
		sql.run(
			`INSERT INTO limit_uses (limit_key, until, count)
			VALUES (?, ?, ?)
			ON CONFLICT (limit_key, until) DO UPDATE SET count = count + excluded.count`,
			key,
			until,
			count,
		);
	}
}

/** When the slice in which it was sent, and the next, have left the window. */
function endOf(key: string, at: Micros): Micros {
	const window = windowOf(key);
	const slice = Math.ceil(window / slices);
	return (Math.floor(at / slice) + 2) * slice + window;
}
