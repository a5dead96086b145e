/**
 * Messages that wait for a limit: until when, and how they are woken when the limits change. Waking a million in one
 * transaction would hold up every other write for seconds. So they are woken in slices, from the latest turn backwards;
 * the place reached is kept beside the settings, and each lease goes on from there. A process that dies loses nothing.
 */
import type { MessageScope } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import { limitSettings, parseLimits, rateLimit, type SendLimit } from '../../../engine/rules/limits.js';
import { parseStored } from '../../errors.js';
import type { Operations } from '../../operations.js';
import { isOpenNow } from '../campaign-windows.js';
import type { Sql } from '../sql.js';
import { nextRoom } from './limits.js';

/** A setting that users cannot set. */
const placeName = 'waking_held';

interface SettingRow {
	name: string;
	value: string;
}

/** The limits, and where waking goes on. */
const selectSettings = `SELECT name, value FROM settings WHERE name IN (${[
	...Object.keys(limitSettings),
	placeName,
]
	.map((name) => `'${name}'`)
	.join(', ')})`;

/** The limits of the settings, and the rate of a worker. */
export async function readLimits(sql: Sql, perSecond?: number): Promise<SendLimit[]> {
	return (await readLimitsAndPlace(sql, perSecond)).limits;
}

/** `place` null: nothing is being woken. */
export async function readLimitsAndPlace(
	sql: Sql,
	perSecond?: number,
): Promise<{ limits: SendLimit[]; place: Place | null }> {
	const rows = await sql.all<SettingRow>(selectSettings);
	const limits = perSecond === undefined ? [] : [rateLimit(perSecond)];
	for (const [name, scope] of Object.entries(limitSettings)) {
		const row = rows.find((one) => one.name === name);
		if (row === undefined) continue;
		const parsed = parseLimits(scope, row.value);
		// Checked before it was stored; a later version may store limits that this one does not know.
		if (parsed.kind === 'limits') limits.push(...parsed.limits);
	}
	const place = rows.find(({ name }) => name === placeName);
	// Written below.
	return { limits, place: place === undefined ? null : (parseStored(place.value) as Place) };
}

/** Only reads: says when another lease is worth a try, not whether it will find a message. */
export function createLimitTurns(sql: Sql) {
	return {
		nextTurn: async ({ scope, now, search, perSecond }) => {
			const limits = await readLimits(sql, perSecond);
			if (limits.length === 0) return null;
			const isGlobal = limits.some((limit) => limit.scope === 'all');
			if (isGlobal && (await wakesBefore(sql, scope, { condition: due, horizon: now, now })) !== null)
				return await nextRoom(sql, limits, now);
			const lastTurn = await sql.number('SELECT coalesce(max(next_turn), 0) FROM limit_lines');
			const horizon = Math.max(lastTurn, now);
			return search === 'exactly' || (scope !== null && 'submission' in scope)
				? await wakesBefore(sql, scope, { condition: held, horizon, now })
				: await wakesAbout(sql, scope, { horizon, now });
		},
	} satisfies Partial<Operations>;
}

/** Whether something could be leased without the limits. */
export async function wakesNow(sql: Sql, now: Micros): Promise<boolean> {
	return (await wakesBefore(sql, null, { condition: due, horizon: now, now })) !== null;
}

/** Without those that wait for their time; the first value is the moment. */
function lanesOf(scope: MessageScope | null): string {
	return scope === null
		? `SELECT 0 AS seq UNION ALL SELECT -1
			UNION ALL SELECT seq FROM campaigns g WHERE has_open_work = 1 AND state = 'released' AND ${isOpenNow}`
		: `SELECT seq FROM campaigns g WHERE state = 'released' AND ${isOpenNow} AND id = ?`;
}

/** All waiting messages. */
const due = 'TRUE';
/** Messages put back: each waits for a moment before the end of its line. */
const held = "m.wake_at > m.due_at AND m.state <> 'leased'";

/** The first message that wakes by `horizon`; null: none. */
async function wakesBefore(
	sql: Sql,
	scope: MessageScope | null,
	{ condition, horizon, now }: { condition: string; horizon: Micros; now: Micros },
): Promise<Micros | null> {
	if (scope !== null && 'submission' in scope) {
		const row = await sql.get<{ wake_at: Micros | null }>(
			`SELECT min(m.wake_at) AS wake_at
			FROM submissions s
			JOIN messages m ON m.submission_seq = s.seq
			LEFT JOIN campaigns g ON g.seq = s.campaign_seq
			WHERE s.id = ? AND (g.state IS NULL OR g.state = 'released') AND m.wake_at <= ? AND ${condition}`,
			scope.submission,
			horizon,
		);
		return row?.wake_at ?? null;
	}
	return await firstOfLanes(sql, { scope, now }, (lane) =>
		// messages_due (lane, wake_at)
		sql.get<{ wake_at: Micros | null }>(
			`SELECT m.wake_at
			FROM messages m ${sql.dialect.using('messages_due')}
			WHERE m.lane = ? AND m.wake_at IS NOT NULL AND m.wake_at <= ? AND ${condition}
			ORDER BY m.wake_at
			LIMIT 1`,
			lane,
			horizon,
		),
	);
}

/** The number of rows read: a million deferred messages may stand before the first that was put back. */
const mostLookedAt = 200;

/**
 * The first held message that wakes by `horizon`, else the last row read if there may be more rows.
 */
async function wakesAbout(
	sql: Sql,
	scope: Exclude<MessageScope, { submission: string }> | null,
	{ horizon, now }: { horizon: Micros; now: Micros },
): Promise<Micros | null> {
	return await firstOfLanes(sql, { scope, now }, (lane) =>
		// messages_due (lane, wake_at)
		sql.get<{ wake_at: Micros | null }>(
			`SELECT coalesce(
				min(CASE WHEN ${held} THEN m.wake_at END),
				CASE WHEN count(*) = ${mostLookedAt} THEN max(m.wake_at) END
			) AS wake_at
			FROM (
				SELECT wake_at, due_at, state
				FROM messages ${sql.dialect.using('messages_due')}
				WHERE lane = ? AND wake_at IS NOT NULL AND wake_at <= ?
				ORDER BY wake_at
				LIMIT ${mostLookedAt}
			) m`,
			lane,
			horizon,
		),
	);
}

async function firstOfLanes(
	sql: Sql,
	{ scope, now }: { scope: Exclude<MessageScope, { submission: string }> | null; now: Micros },
	firstOf: (lane: number) => Promise<{ wake_at: Micros | null } | undefined>,
): Promise<Micros | null> {
	const lanes = await sql.all<{ seq: number }>(
		lanesOf(scope),
		now,
		...(scope === null ? [] : [scope.campaign]),
	);
	let first: Micros | null = null;
	for (const { seq } of lanes) {
		const at = (await firstOf(seq))?.wake_at ?? null;
		if (at !== null) first = Math.min(at, first ?? at);
	}
	return first;
}

export interface Waking {
	/** Wakes some messages of one lane, at most `limit`; true: there may be more. */
	wakeHeldSlice(c: { limit: number }): Promise<boolean>;
}

export interface Place {
	/** The lanes that are left; the first is in work. */
	lanes: number[];
	/** Messages with an earlier turn need no waking. */
	since: Micros;
	/** The last turn read in the first lane; null: none yet. */
	before: Turn | null;
}

type Turn = [wake_at: Micros, id: number];

/** Begins anew where waking was already under way. */
export async function startWaking(sql: Sql, now: Micros): Promise<void> {
	const lanes = await sql.all<{ seq: number }>(
		`SELECT 0 AS seq UNION ALL SELECT -1
		UNION ALL SELECT seq FROM campaigns WHERE has_open_work = 1 AND state = 'released'`,
	);
	keepPlace(sql, { lanes: lanes.map(({ seq }) => seq), since: now, before: null });
	sql.write('DELETE FROM limit_lines');
}

/** For a lease: one slice a transaction until none is left, then the lease. */
export function createWaking(sql: Sql): Waking {
	return {
		wakeHeldSlice: async ({ limit }) => {
			const { place } = await readLimitsAndPlace(sql);
			return place !== null && (await wakeFrom(sql, place, limit));
		},
	};
}

/** One slice; true: there may be more. */
export async function wakeFrom(sql: Sql, place: Place, limit: number): Promise<boolean> {
	await wakeLane(sql, place, limit);
	keepPlace(sql, place);
	return place.lanes.length > 0;
}

/** Wakes at most `room` messages of the first lane, which is removed at its end. */
async function wakeLane(sql: Sql, place: Place, room: number): Promise<void> {
	const [lane = 0] = place.lanes;
	const before = place.before ?? [Number.MAX_SAFE_INTEGER, 0];
	const last = await lastOfSlice(sql, { lane, since: place.since, before, room });
	sql.write(
		// messages_due (lane, wake_at, id)
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

/** The last turn of a slice of this size; null: the lane has fewer. */
async function lastOfSlice(
	sql: Sql,
	{ lane, since, before, room }: { lane: number; since: Micros; before: Turn; room: number },
): Promise<Turn | null> {
	const row = await sql.get<{ wake_at: Micros; id: number }>(
		// messages_due (lane, wake_at, id)
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

function keepPlace(sql: Sql, place: Place): void {
	if (place.lanes.length === 0) {
		sql.write('DELETE FROM settings WHERE name = ?', placeName);
		return;
	}
	sql.write(
		`INSERT INTO settings (name, value, updated_at)
		VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
		placeName,
		JSON.stringify(place),
		place.since,
	);
}
