/**
 * Other limits hold now: whoever waits for a turn under the old ones looks again. A million of them in one transaction
 * would keep every other write waiting for seconds, so they are woken some at a time, from the latest turn backwards,
 * and how far that is is kept beside the settings. Who leases goes on with it: nothing is lost when a process dies.
 * What is put back meanwhile is mostly behind the place that was reached; what is not looks once more.
 */
import type { Micros } from '../../api/datetime.js';
import type { Sql } from './sql.js';

export interface Waking {
	/** Wakes some of one lane, `limit` at most; true: there may be more. */
	wakeHeldSlice(c: { limit: number }): boolean;
}

/** Nobody's to set. */
const placeName = 'waking_held';

interface Place {
	/** Those that are left; the first is being worked on. */
	lanes: number[];
	/** Turns that had come by then need no waking. */
	since: Micros;
	/** Of the last that was looked at in the first lane; null: none was. */
	before: Turn | null;
}

type Turn = [wake_at: Micros, id: number];

/** Begins anew where others were being woken already. */
export function startWaking(sql: Sql, now: Micros): void {
	const lanes = sql.all<{ seq: number }>(
		`SELECT 0 AS seq UNION ALL SELECT -1
		UNION ALL SELECT seq FROM mailings WHERE has_open_work = 1 AND state = 'released'`,
	);
	keepPlace(sql, { lanes: lanes.map(({ seq }) => seq), since: now, before: null });
	sql.run('DELETE FROM limit_lines');
}

/** For whoever leases: a slice a transaction, until there are no more, and then the lease. */
export function createWaking(sql: Sql): Waking {
	return {
		wakeHeldSlice: ({ limit }) => {
			const place = readPlace(sql);
			if (place === null) return false;
			wakeLane(sql, place, limit);
			keepPlace(sql, place);
			return place.lanes.length > 0;
		},
	};
}

/** At most `room` of the first lane, which is taken off at its end. */
function wakeLane(sql: Sql, place: Place, room: number): void {
	const [lane = 0] = place.lanes;
	const before = place.before ?? [Number.MAX_SAFE_INTEGER, 0];
	const last = lastOfSlice(sql, { lane, since: place.since, before, room });
	sql.run(
		// messages_due (lane, wake_at, rowid)
		`UPDATE messages
		SET wake_at = due_at
		WHERE lane = ? AND wake_at > ? AND (wake_at, id) < (?, ?) AND (wake_at, id) >= (?, ?)
			AND wake_at > due_at AND state <> 'leased'`,
		lane,
		place.since,
		...before,
		...(last ?? [place.since, 0]),
	);
	place.before = last;
	if (last === null) place.lanes.shift();
}

/** The turn of the last of so many; null: the lane has fewer. */
function lastOfSlice(
	sql: Sql,
	{ lane, since, before, room }: { lane: number; since: Micros; before: Turn; room: number },
): Turn | null {
	const row = sql.get<{ wake_at: Micros; id: number }>(
		// messages_due (lane, wake_at, rowid)
		`SELECT wake_at, id
		FROM messages
		WHERE lane = ? AND wake_at > ? AND (wake_at, id) < (?, ?)
		ORDER BY wake_at DESC, id DESC
		LIMIT 1 OFFSET ?`,
		lane,
		since,
		...before,
		room - 1,
	);
	return row === undefined ? null : [row.wake_at, row.id];
}

function readPlace(sql: Sql): Place | null {
	const row = sql.get<{ value: string }>('SELECT value FROM settings WHERE name = ?', placeName);
	// Written below.
	return row === undefined ? null : JSON.parse(row.value);
}

function keepPlace(sql: Sql, place: Place): void {
	if (place.lanes.length === 0) {
		sql.run('DELETE FROM settings WHERE name = ?', placeName);
		return;
	}
	sql.run(
		`INSERT INTO settings (name, value, updated_at)
		VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
		placeName,
		JSON.stringify(place),
		place.since,
	);
}
