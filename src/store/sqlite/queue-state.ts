/** The queue as a person looks at it: how much waits, why, and who is at it. */
import { hostname } from 'node:os';
import type { Micros } from '../../api/datetime.js';
import type { DeferredDomain, QueueState, QueueWorker } from '../queue.js';
import { holdingLimits } from './limit-holders.js';
import { countByState, nextDue } from './messages.js';
import { heartbeatFreshMicros, isRunning } from './processes.js';
import { findPauses } from './queue-pauses.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';

const mostDomains = 50;

/** Reads alone, and walks everything that waits. Domains and limits are 50 at most. */
export function createQueueState(sql: Sql): Pick<Operations, 'queueState'> {
	return {
		queueState: ({ now }): QueueState => ({
			messages: countByState(sql, null),
			...waiting(sql, now),
			next_due_at: nextDue(sql, null),
			pauses: findPauses(sql),
			workers: findWorkers(sql, now),
			deferred: deferredDomains(sql),
			...holdingLimits(sql, now, { from: joined, onItsWay, domain }),
		}),
	};
}

/** Of mailings those that were released and not canceled: what waits in the others is not on its way. */
const onItsWay = "m.wake_at IS NOT NULL AND (g.state IS NULL OR g.state = 'released')";
// The lane of a mailing's messages is its seq: no need to look at a million submissions.
const joined = 'messages m LEFT JOIN mailings g ON g.seq = m.lane';

function waiting(sql: Sql, now: Micros): Pick<QueueState, 'due' | 'oldest_at'> {
	const row = sql.get<{ due: number | null; oldest_at: Micros | null }>(
		`SELECT sum(m.wake_at <= ?) AS due, min(coalesce(g.released_at, m.created_at)) AS oldest_at
		FROM ${joined}
		WHERE ${onItsWay}`,
		now,
	);
	return { due: row?.due ?? 0, oldest_at: row?.oldest_at ?? null };
}

/** What stands behind the last @; a quoted local part may hold others, and rtrim takes off everything but them. */
const domain = `CASE
	WHEN m.to_key LIKE '"%' THEN replace(m.to_key, rtrim(m.to_key, replace(m.to_key, '@', '')), '')
	ELSE substr(m.to_key, instr(m.to_key, '@') + 1)
END`;

function deferredDomains(sql: Sql): DeferredDomain[] {
	const rows = sql.all<DeferredDomain & { last_due_at: Micros }>(
		// SQLite takes last_reply from the row of max().
		`SELECT ${domain} AS domain, count(*) AS messages, min(m.due_at) AS next_due_at, m.last_reply,
			max(m.due_at) AS last_due_at
		FROM ${joined}
		WHERE m.state = 'deferred' AND ${onItsWay}
		GROUP BY 1
		ORDER BY messages DESC, domain
		LIMIT ${mostDomains}`,
	);
	return rows.map(({ last_due_at: _, ...found }) => found);
}

/**
 * Who holds leases, and who is there to take some; owners are called `host:pid:…` (see `Queue.lease`). One of this machine
 * that was killed is told by its pid, before its heartbeat is old.
 */
function findWorkers(sql: Sql, now: Micros): QueueWorker[] {
	const workers = new Map<string, QueueWorker>();
	const known = sql.all<{ role: string; host: string; pid: number; heard_at: Micros }>(
		'SELECT role, host, pid, heartbeat_at AS heard_at FROM processes WHERE heartbeat_at > ? ORDER BY id',
		now - heartbeatFreshMicros,
	);
	const here = hostname();
	for (const { role, host, pid, heard_at } of known) {
		const isGone = host === here && !isRunning(pid);
		workers.set(`${host}:${pid}`, { role: isGone ? null : role, host, pid, messages: 0, heard_at });
	}
	const leases = sql.all<{ lease_owner: string; count: number }>(
		`SELECT lease_owner, count(*) AS count
		FROM messages
		WHERE wake_at IS NOT NULL AND state = 'leased' AND lease_owner IS NOT NULL
		GROUP BY lease_owner`,
	);
	for (const { lease_owner, count } of leases) {
		const [host = '', pid = ''] = lease_owner.split(':');
		const name = `${host}:${pid}`;
		const { role = null, messages = 0, heard_at = null } = workers.get(name) ?? {};
		workers.set(name, { role, host, pid: Number(pid), messages: messages + count, heard_at });
	}
	const isWorthTelling = ({ role, messages }: QueueWorker) =>
		messages > 0 || (role !== 'cli' && role !== null);
	return [...workers.values()].filter(isWorthTelling);
}
