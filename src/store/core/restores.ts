/** A restored copy of a database: its original may have sent since what waits in the copy. */
import type { Operations } from '../operations.js';
import { countByState } from './messages.js';
import { createQueuePauses } from './queue-state.js';
import { settle } from './settle.js';
import type { Sql } from './sql.js';

/** In one transaction of the caller, on a copy that no other process has open. */
export function createRestores(sql: Sql) {
	return {
		settleRestored: async ({ reason, now }) => {
			const leased = await sql.all<{ message: string; fence: number }>(
				// messages_due
				"SELECT uuid AS message, fence FROM messages WHERE wake_at IS NOT NULL AND state = 'leased' ORDER BY id",
			);
			const text = 'the database was restored from a backup of the moment when this was being sent';
			const reply = { phase: 'answer', code: null, enhanced: null, text } as const;
			await settle(
				sql,
				leased.map((row) => ({ ...row, at: now, outcome: { kind: 'uncertain', reply } })),
			);
			// Their worker is one of the original: a delivery that is repeated has the same webhook-id.
			await sql.run(
				'UPDATE webhook_deliveries SET due_at = min(due_at, ?) WHERE due_at IS NOT NULL AND state = ?',
				now,
				'sending',
			);
			await createQueuePauses(sql).pause({ kind: 'manual', reason, retry_at: null, now });
			const { queued = 0, deferred = 0 } = await countByState(sql, null);
			return { uncertain: leased.length, waiting: queued + deferred };
		},
	} satisfies Partial<Operations>;
}
