/**
 * When messages of a campaign may leave: not before its start, and within its window of each day. Its row holds the moment
 * before which nothing is leased, so that a lease looks at one row of each open campaign, however many messages wait. Its
 * state is that of its messages to people.
 */
import type { CampaignPlan } from '../../api/campaigns.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import { closing, opening, parseWindow, type Window } from '../../api/schema/sending-times.js';
import type { Sql } from './sql.js';

/** The columns of a campaign that decide. */
export interface GateRow {
	seq: number;
	starts_at: Micros | null;
	opens_at: Micros | null;
	send_window: string | null;
	time_zone: string | null;
}

export const gateColumns = 'starts_at, opens_at, send_window, time_zone';

/** Whether a campaign `g` may be leased, as far as its row says; the moment is bound. */
export const isOpenNow = '(g.opens_at IS NULL OR g.opens_at <= ?)';

/** The moment at which a message that wakes at `wakes` may leave, of a campaign `g` or of none. */
export function leavesAt(wakes: string): string {
	return `CASE WHEN g.opens_at > ${wakes} THEN g.opens_at ELSE ${wakes} END`;
}

/** The first moment at which a campaign that is released now may leave; null: at once. */
export function openingOf({ starts_at, send_window, time_zone }: GateRow, now: Micros): Micros | null {
	const from = Math.max(now, starts_at ?? now);
	const window = windowOf({ send_window });
	const opens = window === null ? from : opening(window, time_zone ?? 'UTC', from);
	return opens > now ? opens : null;
}

/** `leave_by`: messages leased now may begin before it; null: at any time. Closed: the row is told until when. */
export async function passGate(
	sql: Sql,
	row: GateRow,
	now: Micros,
): Promise<{ isOpen: boolean; leave_by: Micros | null }> {
	if (row.opens_at !== null && row.opens_at > now) return { isOpen: false, leave_by: null };
	const window = windowOf(row);
	if (window === null) return { isOpen: true, leave_by: null };
	const timeZone = row.time_zone ?? 'UTC';
	const opens = opening(window, timeZone, now);
	if (opens === now) return { isOpen: true, leave_by: closing(window, timeZone, now) };
	sql.write('UPDATE campaigns SET opens_at = ? WHERE seq = ?', opens, row.seq);
	return { isOpen: false, leave_by: null };
}

/** For people; nothing of a campaign without a plan. */
export function planOf(
	row: GateRow & { state: string; last_leased_at: Micros },
	now: Micros,
): { plan?: CampaignPlan } {
	const { starts_at, opens_at, send_window, time_zone } = row;
	if (starts_at === null && send_window === null) return {};
	const isWaiting = row.state === 'released' && opens_at !== null && opens_at > now;
	return {
		plan: {
			starts_at: starts_at === null ? null : formatDateTime(starts_at),
			window: send_window,
			time_zone: time_zone ?? 'UTC',
			opens_at: isWaiting ? formatDateTime(opens_at) : null,
			is_planned: isWaiting && row.last_leased_at === 0,
		},
	};
}

function windowOf({ send_window }: Pick<GateRow, 'send_window'>): Window | null {
	return send_window === null ? null : parseWindow(send_window);
}

/**
 * The visible state: a canceled campaign cancels waiting messages, a released one queues staged ones. Written row by
 * row, a release of a million messages would be a million writes.
 */
export const seenState = `CASE
	WHEN m.state NOT IN ('staged', 'queued', 'deferred') OR g.state IS NULL THEN m.state
	WHEN g.state = 'canceled' THEN 'canceled'
	WHEN g.state = 'released' AND m.state = 'staged' THEN 'queued'
	ELSE m.state
END`;

/** Visible states of messages that have a time to wake. */
const waitingStates = ['staged', 'queued', 'leased', 'deferred', 'canceled'] as const;

/** By visible state, 0 too; walks what waits. Groups would have to be sorted. */
export async function countWaiting(
	sql: Sql,
): Promise<[state: (typeof waitingStates)[number], count: number][]> {
	const [row = []] = await sql.tuples<(number | null)[]>(
		`SELECT ${waitingStates.map((state) => `sum(CASE state WHEN '${state}' THEN 1 ELSE 0 END)`).join(', ')}
		FROM (
			SELECT ${seenState} AS state
			FROM messages m ${sql.dialect.using('messages_due')}
			-- The lane of a campaign's messages is its seq.
			LEFT JOIN campaigns g ON g.seq = m.lane
			WHERE m.wake_at IS NOT NULL
		) w`,
	);
	return waitingStates.map((state, at) => [state, row[at] ?? 0]);
}
