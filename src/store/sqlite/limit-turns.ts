/** The limits in force, who waits for them, and until when. */
import type { MessageScope } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import { limitSettings, parseLimits, rateLimit, type SendLimit } from '../../engine/rules/limits.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';

/** Those of the settings, and the one that a worker asks for. */
export function readLimits(sql: Sql, perSecond?: number): SendLimit[] {
	const limits = perSecond === undefined ? [] : [rateLimit(perSecond)];
	for (const [name, scope] of Object.entries(limitSettings)) {
		const row = sql.get<{ value: string }>('SELECT value FROM settings WHERE name = ?', name);
		if (row === undefined) continue;
		const parsed = parseLimits(scope, row.value);
		// Checked before it was stored; a later version may know more than this one.
		if (parsed.kind === 'limits') limits.push(...parsed.limits);
	}
	return limits;
}

/** Reads alone: tells when another lease is worth asking for, not that it will bring anything. */
export function createLimitTurns(sql: Sql): Pick<Operations, 'nextTurn'> {
	return {
		nextTurn: ({ scope, now, search, perSecond }) => {
			const limits = readLimits(sql, perSecond);
			if (limits.length === 0) return null;
			const isGlobal = limits.some((limit) => limit.scope === 'all');
			if (isGlobal && wakesBefore(sql, scope, { condition: due, horizon: now }) !== null)
				return nextEnd(sql, now) ?? now;
			const lastTurn = sql.number('SELECT coalesce(max(next_turn), 0) FROM limit_lines');
			const horizon = Math.max(lastTurn, now);
			return search === 'exactly' || (scope !== null && 'submission' in scope)
				? wakesBefore(sql, scope, { condition: held, horizon })
				: wakesAbout(sql, scope, horizon);
		},
	};
}

/** Something could be leased if it were not for the limits. */
export function wakesNow(sql: Sql, now: Micros): boolean {
	return wakesBefore(sql, null, { condition: due, horizon: now }) !== null;
}

function lanesOf(scope: MessageScope | null): string {
	return scope === null
		? `SELECT 0 AS seq UNION ALL SELECT -1
			UNION ALL SELECT seq FROM mailings WHERE has_open_work = 1 AND state = 'released'`
		: "SELECT seq FROM mailings WHERE id = ? AND state = 'released'";
}

/** The moment at which the least room comes back. A limit on everything puts nothing back: all that is due waits. */
function nextEnd(sql: Sql, now: Micros): Micros | null {
	const row = sql.get<{ until: Micros | null }>(
		"SELECT min(until) AS until FROM limit_uses WHERE limit_key >= 'all ' AND limit_key < 'all!' AND until > ?",
		now,
	);
	return row?.until ?? null;
}

/** Whatever wakes. */
const due = '1';
/** Put back: each waits for a moment before the end of its line. */
const held = "m.wake_at > m.due_at AND m.state <> 'leased'";

/** The first that wakes until then; null: none. */
function wakesBefore(
	sql: Sql,
	scope: MessageScope | null,
	{ condition, horizon }: { condition: string; horizon: Micros },
): Micros | null {
	if (scope !== null && 'submission' in scope) {
		const row = sql.get<{ wake_at: Micros | null }>(
			`SELECT min(m.wake_at) AS wake_at
			FROM submissions s
			JOIN messages m ON m.submission_seq = s.seq
			LEFT JOIN mailings g ON g.seq = s.mailing_seq
			WHERE s.id = ? AND (g.state IS NULL OR g.state = 'released') AND m.wake_at <= ? AND ${condition}`,
			scope.submission,
			horizon,
		);
		return row?.wake_at ?? null;
	}
	return firstOfLanes(sql, scope, (lane) =>
		// messages_due (lane, wake_at)
		sql.get<{ wake_at: Micros | null }>(
			`SELECT m.wake_at
			FROM messages m INDEXED BY messages_due
			WHERE m.lane = ? AND m.wake_at IS NOT NULL AND m.wake_at <= ? AND ${condition}
			ORDER BY m.wake_at
			LIMIT 1`,
			lane,
			horizon,
		),
	);
}

/** How many are looked at: deferred ones may stand before the first that was put back, a million of them. */
const mostLookedAt = 200;

/** The first of the held that wakes until then, or, where it is not among those looked at, the last of these. */
function wakesAbout(
	sql: Sql,
	scope: Exclude<MessageScope, { submission: string }> | null,
	horizon: Micros,
): Micros | null {
	return firstOfLanes(sql, scope, (lane) =>
		// messages_due (lane, wake_at)
		sql.get<{ wake_at: Micros | null }>(
			`SELECT coalesce(
				min(CASE WHEN ${held} THEN m.wake_at END),
				CASE WHEN count(*) = ${mostLookedAt} THEN max(m.wake_at) END
			) AS wake_at
			FROM (
				SELECT wake_at, due_at, state
				FROM messages INDEXED BY messages_due
				WHERE lane = ? AND wake_at IS NOT NULL AND wake_at <= ?
				ORDER BY wake_at
				LIMIT ${mostLookedAt}
			) m`,
			lane,
			horizon,
		),
	);
}

function firstOfLanes(
	sql: Sql,
	scope: Exclude<MessageScope, { submission: string }> | null,
	firstOf: (lane: number) => { wake_at: Micros | null } | undefined,
): Micros | null {
	const lanes = sql.all<{ seq: number }>(lanesOf(scope), ...(scope === null ? [] : [scope.mailing]));
	const times = lanes.map(({ seq }) => firstOf(seq)?.wake_at ?? null).filter((at) => at !== null);
	return times.length === 0 ? null : Math.min(...times);
}
