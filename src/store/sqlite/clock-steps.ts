/** The clock was set back: what waits for moments of the clock before would wait for longer than anything does. */
import type { Micros } from '../../api/datetime.js';
import { microsPerSecond } from '../../api/datetime.js';
import { isHere, longestLease } from './reclaim.js';
import type { Sql } from './sql.js';
import { openLanes } from './submissions.js';

/** Above the longest wait between two attempts (`delivery/schedule.ts`: 4 h and a tenth). */
const longestWait: Micros = 5 * 3_600 * microsPerSecond;
/** Of a lane, so that nobody waits for it long. */
const mostAtOnce = 10_000;

/**
 * What is deferred for longer than the schedule ever says is due now; a lease that would last longer than any lasts no
 * longer than one begun now, unless its owner runs on this machine: then it is the clock of this process that is wrong,
 * or the owner renews it by the right one. Done twice it changes nothing more. What a limit holds back keeps its turn,
 * however far that is: its `due_at` has passed.
 */
export function pullForward(sql: Sql, { host, now }: { host: string; now: Micros }): void {
	const waiting = (lane: number) => [lane, now + longestWait] as const;
	for (const lane of openLanes(sql)) {
		const owners = sql.all<{ lease_owner: string | null }>(
			`SELECT DISTINCT lease_owner FROM (${longWaiting}) WHERE state = 'leased'`,
			...waiting(lane),
		);
		const kept = owners.flatMap(({ lease_owner: owner }) =>
			owner !== null && isHere(owner, host) ? [owner] : [],
		);
		sql.run(
			`UPDATE messages
			SET due_at = min(due_at, ?), wake_at = CASE state WHEN 'leased' THEN ? ELSE ? END
			WHERE id IN (
				SELECT id
				FROM (${longWaiting})
				WHERE CASE state
					WHEN 'leased' THEN lease_owner IS NULL OR lease_owner NOT IN (SELECT value FROM json_each(?))
					ELSE due_at > ?
				END
			)`,
			now,
			now + longestLease,
			now,
			...waiting(lane),
			JSON.stringify(kept),
			now + longestWait,
		);
	}
}

// messages_due (lane, wake_at): what is held back by a limit is looked at, too, and therefore not all of it.
const longWaiting = `SELECT id, due_at, state, lease_owner
	FROM messages INDEXED BY messages_due
	WHERE lane = ? AND wake_at IS NOT NULL AND wake_at > ?
	ORDER BY wake_at
	LIMIT ${mostAtOnce}`;
