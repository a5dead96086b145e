/** Ends the leases of processes of this machine that are gone, without waiting for the end of each. */
import { type Micros, microsPerSecond } from '../../api/datetime.js';
import type { ProcessIdentity } from './processes.js';
import type { Sql } from './sql.js';
import { openLanes } from './submissions.js';
import { isLost, ownersOf } from './this-process.js';

/** No lease is longer; a longer wait means that the message is deferred. */
export const longestLease: Micros = 600 * microsPerSecond;

/**
 * Of processes with a heartbeat from before `heardBefore` that did not say that they end. A process that is stopped keeps
 * its leases.
 */
export async function reclaimLeases(
	sql: Sql,
	{ me, heardBefore, now }: { me: ProcessIdentity; heardBefore: Micros; now: Micros },
): Promise<void> {
	const others = await sql.all<ProcessIdentity>(
		'SELECT id, role, host, pid FROM processes WHERE id <> ? AND heartbeat_at <= ? ORDER BY id',
		me.id,
		heardBefore,
	);
	for (const other of others) {
		if (!isLost(other)) continue;
		const owners = ownersOf(other);
		const isOurs = `lease_owner IS NOT NULL AND substr(lease_owner, 1, ${owners.length}) = ?`;
		for (const lane of await openLanes(sql)) {
			// messages_due (lane, wake_at): leased and shortly deferred messages, not the whole queue.
			await sql.run(
				`UPDATE messages
				SET wake_at = ?
				WHERE lane = ? AND wake_at IS NOT NULL AND wake_at > ? AND wake_at <= ? AND state = 'leased' AND ${isOurs}`,
				...[now, lane, now, now + longestLease, owners],
			);
		}
		// webhook_deliveries_due
		await sql.run(
			`UPDATE webhook_deliveries
			SET due_at = ?
			WHERE due_at > ? AND due_at <= ? AND state = 'sending' AND ${isOurs}`,
			...[now, now, now + longestLease, owners],
		);
		await sql.run('DELETE FROM processes WHERE id = ?', other.id);
	}
}
