import type { SpecIdentity } from '../../../api/campaign-identity.js';
import type { AcceptCounts, AnyCampaignSpec, CampaignPlan, CampaignStatus } from '../../../api/campaigns.js';
import { closing, formatDateTime, type Micros, opening, parseWindow } from '../../../api/datetime.js';
import type { MessageState, Uuid } from '../../../api/records.js';
import type { Courier } from '../../../engine/rules/campaign-rows.js';
import type { Seen } from '../../store.js';
import { type Conditions, conditionsOf, type Insertion, parseStored, type Sql, timeOf } from '../sql.js';

export const maxListedRejects = 100;

export interface CampaignRow {
	seq: number;
	id: Uuid;
	key: string;
	spec: string;
	strict_vars: number;
	state: CampaignStatus['state'];
	requests: number;
	courier: Courier;
	is_complete: number;
	released_at: Micros | null;
	staged: number;
	suppressed: number;
	rejected: number;
	left_out: number;
	audience: string | null;
	starts_at: Micros | null;
	opens_at: Micros | null;
	send_window: string | null;
	time_zone: string | null;
	last_leased_at: Micros;
	position: number;
	owner: string | null;
	created_at: Micros;
	dropped_at: Micros | null;
	is_again: number;
	rate: string | null;
}

export const campaignColumns =
	'seq, id, key, spec, strict_vars, state, requests, courier, is_complete, released_at, staged, suppressed, rejected, left_out, audience, starts_at, opens_at, send_window, time_zone, last_leased_at, position, owner, created_at, dropped_at, is_again, rate';

/** After retention has deleted the bodies, `identity` holds their hashes. */
type StoredSpec = AnyCampaignSpec & { identity?: SpecIdentity };

export function specOf({ spec }: Pick<CampaignRow, 'spec'>): StoredSpec {
	return parseStored(spec) as StoredSpec;
}

export function isSeen({ owner }: Pick<CampaignRow, 'owner'>, { only_of }: Seen): boolean {
	return only_of === undefined || owner === only_of;
}

export function seenRows(column: string, { only_of }: Seen): Conditions {
	return conditionsOf([[`${column} = ?`, only_of]]);
}

/**
 * True while a released campaign `g` has waiting messages, or messages that an API may have received. Uses the indexes
 * messages_due and messages_over_of_lane. `has_open_work` may still be 1 after the last message was sent.
 */
export const isSending = `(g.state = 'released' AND (
	(g.has_open_work = 1 AND EXISTS (SELECT 1 FROM messages WHERE lane = g.seq AND wake_at IS NOT NULL))
	OR (g.courier = 'api' AND EXISTS (
		SELECT 1 FROM messages WHERE lane = g.seq AND state = 'uncertain' AND wake_at IS NULL AND state <> 'sent'
	))
))`;

/** The `?` is the current time. */
export const isPlanned = "(g.state = 'released' AND g.last_leased_at = 0 AND g.opens_at > ?)";

export function noCounts(): AcceptCounts {
	return { staged: 0, suppressed: 0, rejected: 0 };
}

export function countsOf({ staged, suppressed, rejected, left_out }: CampaignRow): AcceptCounts {
	return { staged, suppressed, rejected, ...(left_out > 0 && { left_out }) };
}

export type WindowRow = Pick<CampaignRow, 'seq' | 'starts_at' | 'opens_at' | 'send_window' | 'time_zone'>;

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

/** `leave_by` is when the window closes. If the window is closed, stores when it opens next. */
export async function enterWindow(
	sql: Sql,
	row: WindowRow,
	now: Micros,
): Promise<{ isOpen: boolean; leave_by: Micros | null }> {
	const openAt = (opens: Micros | null) =>
		sql.write('UPDATE campaigns SET opens_at = ? WHERE seq = ?', [opens, row.seq]);
	if (row.opens_at !== null && row.opens_at > now) {
		const opens = openingOf(row, now);
		// `opens_at` is too late if the clock was ahead when `opens_at` was stored.
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

/** The state that users see. Canceling or releasing a campaign does not rewrite the states of its messages. */
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

/** If `now` is null, `due` is 0. */
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

export const intoLeftOut: Insertion = {
	table: 'campaign_left_out',
	columns: {
		...{ campaign_seq: 'BIGINT', submission_seq: 'BIGINT', campaign: 'TEXT', list_id: 'BIGINT' },
		...{ to_email: 'TEXT', to_key: 'TEXT', code: 'TEXT', detail: 'TEXT' },
	},
	conflict: '',
};
