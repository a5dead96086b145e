/** The lanes of the queue: one for each campaign and two for other messages, opened and closed by the state of campaigns. */
import type { MessageScope } from '../../api/capabilities.js';
import { type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import type { Settlement } from '../queue.js';
import { enterWindow, type WindowRow, windowColumns } from './campaign-windows.js';
import { provenTime } from './retention/proven-time.js';
import { settle } from './settle.js';
import type { Sql } from './sql.js';
import { lanes } from './submissions.js';

export interface OpenLanes {
	hasTransactional: boolean;
	/** Without those that wait for their time. `leave_by`: the end of their window. `isDue`: a message is due. */
	bulk: { lane: number; leave_by: Micros | null; isDue: boolean }[];
	canceled: number[];
}

interface LaneRow extends WindowRow {
	is_due: number;
}

function isDue({ dialect }: Sql, lane: string): string {
	return `EXISTS (
		SELECT 1 FROM messages ${dialect.using('messages_due')}
		WHERE lane = ${lane} AND wake_at IS NOT NULL AND wake_at <= ?
	)`;
}

/** A machine is off for so long at most: a clock further ahead of the proven time begins no planned campaign. */
const longestOff: Micros = 31 * microsPerDay;

/** The campaigns whose window is open. A planned one waits where its time came by a clock that is not proven. */
async function through(
	sql: Sql,
	rows: readonly (LaneRow & { last_leased_at?: Micros })[],
	now: Micros,
): Promise<OpenLanes['bulk']> {
	const open: OpenLanes['bulk'] = [];
	for (const row of rows) {
		const { starts_at, last_leased_at } = row;
		const begins = starts_at !== null && starts_at <= now && last_leased_at === 0;
		if (begins && starts_at > (await provenTime(sql, now, longestOff))) continue;
		const { isOpen, leave_by } = await enterWindow(sql, row, now);
		if (isOpen) open.push({ lane: row.seq, leave_by, isDue: row.is_due === 1 });
	}
	return open;
}

/** The lane that waited longest comes first, so every lane gets its turn with many lanes and few places. */
export async function lanesOf(sql: Sql, scope: MessageScope | null, now: Micros): Promise<OpenLanes> {
	if (scope !== null) {
		const [from, condition, id] =
			'campaign' in scope
				? ['campaigns g', 'g.id = ?', scope.campaign]
				: ['submissions s JOIN campaigns g ON g.seq = s.campaign_seq', 's.id = ?', scope.submission];
		const rows = await sql.all<LaneRow>(
			`SELECT g.seq, ${windowColumns}, 1 AS is_due FROM ${from} WHERE ${condition} AND g.state = 'released'`,
			[id],
		);
		return { hasTransactional: false, bulk: await through(sql, rows, now), canceled: [] };
	}
	const [[[transactional, bulk] = [0, 0]], open] = await sql.together([
		() =>
			sql.tuples<[number, number]>(
				`SELECT ${isDue(sql, String(lanes.transactional))}, ${isDue(sql, String(lanes.bulk))}`,
				[now, now],
			),
		// campaigns_open (last_leased_at)
		() =>
			sql.all<LaneRow & { state: string; last_leased_at: Micros }>(
				`SELECT seq, state, last_leased_at, ${windowColumns}, ${isDue(sql, 'campaigns.seq')} AS is_due
				FROM campaigns
				WHERE has_open_work = 1
				ORDER BY last_leased_at, seq`,
				[now],
			),
	]);
	const ofState = (state: string) => open.filter((each) => each.state === state);
	return {
		hasTransactional: transactional === 1,
		bulk: [
			{ lane: lanes.bulk, leave_by: null, isDue: bulk === 1 },
			...(await through(sql, ofState('released'), now)),
		],
		canceled: ofState('canceled').map(({ seq }) => seq),
	};
}

/** The last that a lease writes, and lane by lane in one order, as other leases wait for these rows. */
export function endTurns(
	sql: Sql,
	{ open, served, now }: { open: OpenLanes; served: readonly number[]; now: Micros },
): void {
	const campaigns = [...open.bulk.map(({ lane }) => lane), ...open.canceled].filter((lane) => lane > 0);
	for (const lane of campaigns.toSorted((one, other) => one - other)) {
		if (open.canceled.includes(lane))
			sql.write(
				`UPDATE messages
				SET state = 'canceled', wake_at = NULL, lease_owner = NULL
				WHERE id IN (
					SELECT id
					FROM messages ${sql.dialect.using('messages_due')}
					WHERE lane = ? AND wake_at IS NOT NULL AND wake_at <= ?
					ORDER BY wake_at, id
					LIMIT 500
					${sql.dialect.skipLocked}
				)`,
				[lane, now],
			);
		// The order matters among several; the row of a single one is written once a second.
		const since = campaigns.length > 1 ? now : now - microsPerSecond;
		if (served.includes(lane))
			sql.write(
				'UPDATE campaigns SET last_leased_at = ? WHERE seq = ? AND last_leased_at NOT BETWEEN ? AND ?',
				[now, lane, since, now],
			);
		// A campaign without messages to wake leaves the index that a lease reads.
		sql.write(
			`UPDATE campaigns
			SET has_open_work = 0
			WHERE seq = ? AND has_open_work = 1
				AND NOT EXISTS (SELECT 1 FROM messages WHERE lane = ? AND wake_at IS NOT NULL)`,
			[lane, lane],
		);
	}
}

/** Gives every lane its share, then once more what the others left over. Returns the lanes that had any. */
export async function takeTurns(
	bulk: OpenLanes['bulk'],
	max: number,
	take: (lane: number, max: number, leave_by: Micros | null) => Promise<number>,
): Promise<number[]> {
	const served: number[] = [];
	let room = max;
	let left = bulk.filter(({ isDue }) => isDue);
	for (const round of [1, 2]) {
		const full: typeof left = [];
		for (const [at, one] of left.entries()) {
			if (room <= 0) return served;
			const share = round === 1 ? Math.ceil(room / (left.length - at)) : room;
			const taken = await take(one.lane, share, one.leave_by);
			if (taken > 0) served.push(one.lane);
			if (taken === share) full.push(one);
			room -= taken;
		}
		left = full;
	}
	return served;
}

export function lostCall({ uuid, fence }: { uuid: string; fence: number }, at: Micros): Settlement {
	const text = 'the command was ended before the service answered';
	const reply = { phase: 'call', code: null, enhanced: 'interrupted', text } as const;
	return { message: uuid, fence, at, outcome: { kind: 'uncertain', reply } };
}

/** For the only process of a lane: messages that others have leased are due now, and uncertain where a call was under way. */
export async function loseLeases(
	sql: Sql,
	{ lane, owner, now }: { lane: number; owner: string | null; now: Micros },
): Promise<void> {
	const leased = await sql.all<{ id: number; uuid: string; fence: number; called: number | null }>(
		// messages_due (lane, wake_at): a lease ends in the future, a wait in this index does not.
		`SELECT id, uuid, fence, called
		FROM messages ${sql.dialect.using('messages_due')}
		WHERE lane = ? AND wake_at IS NOT NULL AND wake_at > ? AND state = 'leased' AND lease_owner IS DISTINCT FROM ?`,
		[lane, now, owner],
	);
	await settle(
		sql,
		leased.filter(({ called, fence }) => called === fence).map((row) => lostCall(row, now)),
	);
	for (const { id, called, fence } of leased)
		if (called !== fence) sql.write('UPDATE messages SET wake_at = ? WHERE id = ?', [now, id]);
}
