/** The other processes that have this database open: heartbeats that migrations and bulk writes read. */
import type { Micros } from '../../api/datetime.js';
import { microsPerSecond } from '../../api/datetime.js';
import type { Sql } from './sql.js';
import { isLost } from './this-process.js';

/** The process of an older heartbeat is gone. */
export const heartbeatFreshMicros: Micros = 15 * microsPerSecond;
/** How often a process writes its own. */
export const heartbeatEveryMicros: Micros = 5 * microsPerSecond;

export interface ProcessIdentity {
	id: string;
	/** `serve`, `worker`; of a command `cli`, and `send` from its first lease on. */
	role: string;
	host: string;
	pid: number;
}

export interface LiveProcess extends ProcessIdentity {
	heartbeat_at: Micros;
}

/** Within a write of the process; its first beat makes the row. */
export function beat(sql: Sql, me: ProcessIdentity, now: Micros): void {
	sql.write(
		`INSERT INTO processes (id, role, host, pid, started_at, heartbeat_at)
		VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, role = excluded.role`,
		me.id,
		me.role,
		me.host,
		me.pid,
		now,
		now,
	);
}

/** Ends the heartbeat, so that other processes need not wait for it to grow old. Does nothing without a heartbeat. */
export function endBeat(sql: Sql, me: ProcessIdentity): void {
	sql.write('DELETE FROM processes WHERE id = ?', me.id);
}

/** `findFresh` without processes that are certainly gone: they need not wait for a heartbeat to grow old. */
export async function findOthers(sql: Sql, me: ProcessIdentity, now: Micros): Promise<LiveProcess[]> {
	return (await findFresh(sql, me, now)).filter((other) => !isLost(other));
}

/** Other processes with a fresh heartbeat. */
export async function findFresh(sql: Sql, me: ProcessIdentity, now: Micros): Promise<LiveProcess[]> {
	return await sql.all<LiveProcess>(
		`SELECT id, role, host, pid, heartbeat_at
		FROM processes
		WHERE id <> ? AND heartbeat_at > ?
		ORDER BY id`,
		me.id,
		now - heartbeatFreshMicros,
	);
}
