/** What holds up the queue, kept where every process sees it. */
import type { QueuePause } from '../queue.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';

const columns = 'kind, reason, since, retry_at, faults';

/**
 * A pause on top of one of its kind keeps `since` and the later `retry_at`, takes the new reason, and counts faults.
 */
export function createQueuePauses(sql: Sql): Pick<Operations, 'queuePauses' | 'pause' | 'resume'> {
	return {
		queuePauses: () => findPauses(sql),
		pause: ({ kind, reason, retry_at, now }) => {
			const fault = kind === 'fault' ? 1 : 0;
			const pause = sql.get<QueuePause>(
				// Of several workers that meet the same fault, the one that waits longest has met it most often.
				`INSERT INTO queue_pauses (${columns})
				VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (kind) DO UPDATE
				SET reason = excluded.reason, faults = faults + excluded.faults,
					retry_at = max(retry_at, excluded.retry_at)
				RETURNING ${columns}`,
				kind,
				reason,
				now,
				retry_at,
				fault,
			);
			if (pause === undefined) throw new Error('a row that was just written is not there');
			return pause;
		},
		resume: ({ kinds }) => {
			let changes = 0;
			for (const kind of kinds) changes += sql.run('DELETE FROM queue_pauses WHERE kind = ?', kind).changes;
			return changes > 0;
		},
	};
}

/** `manual` first. */
export function findPauses(sql: Sql): QueuePause[] {
	return sql.all<QueuePause>(`SELECT ${columns} FROM queue_pauses ORDER BY kind DESC`);
}

/** A person said so: nothing is leased. */
export function isHeld(sql: Sql): boolean {
	return sql.number("SELECT EXISTS (SELECT 1 FROM queue_pauses WHERE kind = 'manual')") === 1;
}

/** Another mail server, or another password, may take what the last one refused. */
export function forgetFault(sql: Sql): void {
	sql.run("DELETE FROM queue_pauses WHERE kind = 'fault'");
}
