/** Who else has this database open: heartbeats that migrations and bulk writes look at. */
import type { Micros } from '../../api/datetime.js';
import { microsPerSecond } from '../../api/datetime.js';
import type { Sql } from './sql.js';

/** A heartbeat older than this is of a process that is gone. */
export const heartbeatFreshMicros: Micros = 15 * microsPerSecond;
/** How often a process writes its own. */
export const heartbeatEveryMicros: Micros = 5 * microsPerSecond;

export interface ProcessIdentity {
	id: string;
	role: string;
	host: string;
	pid: number;
}

export interface LiveProcess extends ProcessIdentity {
	heartbeat_at: Micros;
}

/** Within a write of the process; its first beat makes the row. */
export function beat(sql: Sql, me: ProcessIdentity, now: Micros): void {
	sql.run(
		`INSERT INTO processes (id, role, host, pid, started_at, heartbeat_at)
		VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at`,
		me.id,
		me.role,
		me.host,
		me.pid,
		now,
		now,
	);
}

/** So that nobody waits for the last beat to grow old. Nothing happens where there was none. */
export function endBeat(sql: Sql, me: ProcessIdentity): void {
	sql.run('DELETE FROM processes WHERE id = ?', me.id);
}

/**
 * Other processes heard of lately. One of this machine that was killed is told by its pid, so that nobody waits for
 * the heartbeat of a dead process to grow old.
 */
export function findOthers(sql: Sql, me: ProcessIdentity, now: Micros): LiveProcess[] {
	const fresh = sql.all<LiveProcess>(
		`SELECT id, role, host, pid, heartbeat_at
		FROM processes
		WHERE id <> ? AND heartbeat_at > ?
		ORDER BY id`,
		me.id,
		now - heartbeatFreshMicros,
	);
	return fresh.filter((other) => other.host !== me.host || isRunning(other.pid));
}

/** On this machine. */
export function isRunning(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return true;
	} catch (error) {
		// EPERM: it runs, as another user.
		return error instanceof Error && 'code' in error && error.code === 'EPERM';
	}
}
