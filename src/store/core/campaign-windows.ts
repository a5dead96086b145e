/** When messages of a campaign may leave. A lease reads one row: nothing is leased before `opens_at`. */
import type { CampaignPlan } from '../../api/campaigns.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { MessageState } from '../../api/records.js';
import { closing, opening, parseWindow } from '../../api/schema/sending-times.js';
import { timeOf } from './rows.js';
import type { Sql } from './sql.js';

export interface WindowRow {
	seq: number;
	starts_at: Micros | null;
	opens_at: Micros | null;
	send_window: string | null;
	time_zone: string | null;
}

export const windowColumns = 'starts_at, opens_at, send_window, time_zone';

export function leavesAt(wakes: string): string {
	return `CASE WHEN g.opens_at > ${wakes} THEN g.opens_at ELSE ${wakes} END`;
}

export function openingOf({ starts_at, send_window, time_zone }: WindowRow, now: Micros): Micros | null {
	const from = Math.max(now, starts_at ?? now);
	const window = send_window === null ? null : parseWindow(send_window);
	const opens = window === null ? from : opening(window, time_zone ?? 'UTC', from);
	return opens > now ? opens : null;
}

/** `leave_by`: messages leased now may begin before it; null: at any time. A closed one gets its next opening. */
export async function enterWindow(
	sql: Sql,
	row: WindowRow,
	now: Micros,
): Promise<{ isOpen: boolean; leave_by: Micros | null }> {
	const openAt = (opens: Micros | null) =>
		sql.write('UPDATE campaigns SET opens_at = ? WHERE seq = ?', [opens, row.seq]);
	if (row.opens_at !== null && row.opens_at > now) {
		const opens = openingOf(row, now);
		// A clock that was ahead for a time has put it off too far.
		if (opens === null || opens < row.opens_at) openAt(opens);
		if (opens !== null) return { isOpen: false, leave_by: null };
	}
	const window = row.send_window === null ? null : parseWindow(row.send_window);
	if (window === null) return { isOpen: true, leave_by: null };
	const timeZone = row.time_zone ?? 'UTC';
	const opens = opening(window, timeZone, now);
	if (opens === now) return { isOpen: true, leave_by: closing(window, timeZone, now) };
	openAt(opens);
	return { isOpen: false, leave_by: null };
}

export function planOf(
	row: WindowRow & { state: string; last_leased_at: Micros },
	now: Micros,
): { plan?: CampaignPlan } {
	const { starts_at, opens_at, send_window: window, time_zone } = row;
	if (starts_at === null && window === null) return {};
	const isWaiting = row.state === 'released' && opens_at !== null && opens_at > now;
	return {
		plan: {
			...{ starts_at: timeOf(starts_at), window, time_zone: time_zone ?? 'UTC' },
			opens_at: isWaiting ? formatDateTime(opens_at) : null,
			is_planned: isWaiting && row.last_leased_at === 0,
		},
	};
}

/** A canceled campaign cancels waiting messages, a released one queues staged ones, without a write for each message. */
export const seenState = `CASE
	WHEN m.state NOT IN ('staged', 'queued', 'deferred') OR g.state IS NULL THEN m.state
	WHEN g.state = 'canceled' THEN 'canceled'
	WHEN g.state = 'released' AND m.state = 'staged' THEN 'queued'
	ELSE m.state
END`;

export interface WaitingLane {
	state: 'staged' | 'released' | 'canceled' | null;
	opens_at: Micros | null;
	released_at: Micros | null;
	count: number;
	leased: number;
	deferred: number;
	due: number;
	first: number;
}

/** Lanes with such messages; `now` null: `due` is 0. Walks an index that holds all it asks for, and no message. */
export async function waitingLanes(sql: Sql, now: Micros | null): Promise<WaitingLane[]> {
	const waiting = `messages ${sql.dialect.using('messages_due')} WHERE wake_at IS NOT NULL`;
	const [lanes, tried] = await sql.together([
		() =>
			sql.all<Omit<WaitingLane, 'leased' | 'deferred'> & { lane: number }>(
				`SELECT w.*, g.state, g.opens_at, g.released_at
				FROM (
					SELECT lane, count(*) AS count, count(*) FILTER (WHERE wake_at <= ?) AS due, min(id) AS first
					FROM ${waiting}
					GROUP BY lane
				) w
				LEFT JOIN campaigns g ON g.seq = w.lane
				ORDER BY w.lane`,
				[now],
			),
		() =>
			sql.all<{ lane: number; state: string; count: number }>(
				`SELECT lane, state, count(*) AS count
				FROM ${waiting} AND state IN ('leased', 'deferred')
				GROUP BY lane, state`,
			),
	]);
	return lanes.map(({ lane, ...found }) => {
		const of = (state: string) => tried.find((one) => one.lane === lane && one.state === state)?.count ?? 0;
		return { ...found, leased: of('leased'), deferred: of('deferred') };
	});
}

export function countStates(
	lanes: readonly Pick<WaitingLane, 'state' | 'count' | 'leased' | 'deferred'>[],
): Map<MessageState, number> {
	const counts = new Map<MessageState, number>();
	const add = (state: MessageState, count: number) => {
		if (count > 0) counts.set(state, (counts.get(state) ?? 0) + count);
	};
	for (const { state, count, leased, deferred } of lanes) {
		const isCanceled = state === 'canceled';
		add('leased', leased);
		add(isCanceled ? 'canceled' : 'deferred', deferred);
		add(isCanceled || state === 'staged' ? state : 'queued', count - leased - deferred);
	}
	return counts;
}
