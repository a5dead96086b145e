/** Returns leases of dead workers of this machine, without waiting for the leases to end. */
import { type Micros, microsPerSecond } from '../../api/datetime.js';
import { isRunning } from '../core/processes.js';
import { openLanes } from './core.js';
import type { Sql } from './sql.js';

/** No lease is longer; a longer wait means that the message is deferred. */
export const longestLease: Micros = 600 * microsPerSecond;

/**
 * Owners are called `host:pid:…` (see `Queue.lease`). Where another process has the pid by now, the leases last until
 * they end. A live worker that loses its leases finds its fences outdated.
 */
export function reclaimLeases(sql: Sql, { host, now }: { host: string; now: Micros }): void {
	for (const lane of openLanes(sql)) {
		// messages_due (lane, wake_at): leased and shortly deferred messages, not the whole queue.
		const owners = sql.all<{ lease_owner: string }>(
			`SELECT DISTINCT lease_owner
			FROM messages
			WHERE lane = ? AND wake_at > ? AND wake_at <= ? AND state = 'leased' AND lease_owner IS NOT NULL`,
			lane,
			now,
			now + longestLease,
		);
		for (const { lease_owner } of owners) {
			if (!isGone(lease_owner, host)) continue;
			sql.run(
				`UPDATE messages
				SET wake_at = ?
				WHERE lane = ? AND wake_at > ? AND wake_at <= ? AND state = 'leased' AND lease_owner = ?`,
				now,
				lane,
				now,
				now + longestLease,
				lease_owner,
			);
		}
	}
	reclaimDeliveries(sql, { host, now });
}

/** The same for webhook deliveries: their index holds those under way and those that wait for the next attempt. */
function reclaimDeliveries(sql: Sql, { host, now }: { host: string; now: Micros }): void {
	const owners = sql.all<{ lease_owner: string }>(
		// webhook_deliveries_due
		`SELECT DISTINCT lease_owner
		FROM webhook_deliveries
		WHERE due_at > ? AND due_at <= ? AND state = 'sending' AND lease_owner IS NOT NULL`,
		now,
		now + longestLease,
	);
	for (const { lease_owner } of owners) {
		if (!isGone(lease_owner, host)) continue;
		sql.run(
			`UPDATE webhook_deliveries
			SET due_at = ?
			WHERE due_at > ? AND due_at <= ? AND state = 'sending' AND lease_owner = ?`,
			now,
			now,
			now + longestLease,
			lease_owner,
		);
	}
}

function isGone(owner: string, host: string): boolean {
	const pid = pidOf(owner, host);
	return pid !== null && !isRunning(pid);
}

/** Whether the owner of a lease runs on this machine. */
export function isHere(owner: string, host: string): boolean {
	const pid = pidOf(owner, host);
	return pid !== null && isRunning(pid);
}

/** Null: of another machine, or not the name of a worker. */
function pidOf(owner: string, host: string): number | null {
	const [ownHost, pid] = owner.split(':');
	return ownHost === host && pid !== undefined && /^\d+$/.test(pid) ? Number(pid) : null;
}
