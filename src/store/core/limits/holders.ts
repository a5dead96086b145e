import type { Micros } from '../../../api/datetime.js';
import { limitOf, nameLimit, type SendLimit, windowOf } from '../../../engine/rules/limits.js';
import type { Operations } from '../../operations.js';
import type { HoldingLimit, LimitHold, QueueState } from '../../queue.js';
import { nextDue } from '../messages/messages.js';
import type { Sql } from '../sql.js';
import { isAnyAside, onEverything, readLimits, readStanding } from './limits.js';
import { readHolds, Used, type UseRow } from './used.js';

export function createLimitHolders(sql: Sql) {
	return {
		nextTurn: async ({ scope, now, perSecond }) => {
			const { limits, isWaiting } = await readLimits(sql, perSecond);
			const onAll = onEverything(limits);
			if (onAll.length > 0 && ((await nextDue(sql, scope)) ?? now + 1) <= now) {
				const used = new Used(sql, await readStanding(sql, now), now);
				const full = onAll.filter(({ key, count }) => used.of(key) >= count);
				return Math.max(now, ...full.map(({ key }) => used.roomAt(key)));
			}
			if (!isWaiting || !(await isAnyAside(sql, scope))) return null;
			return await sql.number('SELECT min(room_at) FROM limit_rooms');
		},
		holdsOfMessage: ({ id, now }) => holdsOfMessage(sql, id, now),
		limitWaits: async ({ now }) => {
			const { limits } = await readLimits(sql);
			if (limits.length === 0) return [];
			const isDue = ((await nextDue(sql, null)) ?? now + 1) <= now;
			const lines = await linesOf(sql, { limits, now, due: isDue ? 1 : 0 });
			return limits.map((limit) => {
				const { domain: _, ...name } = nameLimit(limit, '');
				const ends = lines.flatMap((line) => (line.limit === limit ? [line.last_at - now] : []));
				return { ...name, wait: Math.max(0, ...ends) };
			});
		},
	} satisfies Partial<Operations>;
}

interface Line {
	limit: SendLimit;
	key: string;
	messages: number;
	next_at: Micros;
	last_at: Micros;
}

async function linesOf(
	sql: Sql,
	{ limits, now, due }: { limits: readonly SendLimit[]; now: Micros; due: number },
): Promise<Line[]> {
	const [used, rooms] = await sql.together([
		() => readUsed(sql, now),
		() =>
			sql.tuples<[key: string, room_at: Micros, waiting: number]>(
				'SELECT limit_key, room_at, waiting FROM limit_rooms ORDER BY waiting DESC, limit_key',
			),
	]);
	const lineOf = (key: string, room_at: Micros, messages: number): Line[] => {
		const limit = limitOf(limits, key);
		if (limit === null) return [];
		const next_at = nextAt(used, limit, { key, room_at, now });
		const last_at = next_at + Math.floor(((messages - 1) * limit.window) / limit.count);
		return [{ limit, key, messages, next_at, last_at }];
	};
	return [
		...rooms.flatMap((room) => lineOf(...room)),
		...onEverything(limits).flatMap(({ key, count }) =>
			due > 0 && used.of(key) >= count ? lineOf(key, now, due) : [],
		),
	];
}

async function readUsed(sql: Sql, now: Micros): Promise<Used> {
	const [holds, uses] = await sql.together([
		() => readHolds(sql),
		() =>
			sql.all<UseRow>(
				'SELECT limit_key, sum(count) AS count, min(until) AS until FROM limit_uses WHERE until > ? GROUP BY limit_key',
				[now],
			),
	]);
	return new Used(sql, { holds, uses }, now);
}

function nextAt(
	used: Used,
	{ count }: SendLimit,
	{ key, room_at, now }: { key: string; room_at: Micros; now: Micros },
): Micros {
	const isFull = used.of(key) >= count;
	return Math.max(room_at, isFull ? (used.firstEnd(key) ?? now + windowOf(key)) : now);
}

export async function holdsOfMessage(sql: Sql, uuid: string, now: Micros): Promise<LimitHold[]> {
	const { limits } = await readLimits(sql);
	if (limits.length === 0) return [];
	const row = await sql.get<{ wake_at: Micros; limit_key: string | null; room_at: Micros; ahead: number }>(
		`SELECT m.wake_at, w.limit_key, r.room_at, (
			-- limit_waiting_in_order
			SELECT count(*)
			FROM limit_waiting a
			WHERE a.limit_key = w.limit_key AND (a.is_bulk, a.message_id) < (w.is_bulk, w.message_id)
		) AS ahead
		FROM messages m
		LEFT JOIN campaigns g ON g.seq = m.lane
		LEFT JOIN limit_waiting w ON w.message_id = m.id
		LEFT JOIN limit_rooms r ON r.limit_key = w.limit_key
		WHERE m.uuid = ? AND m.wake_at IS NOT NULL AND m.state <> 'leased' AND (g.state IS NULL OR g.state = 'released')`,
		[uuid],
	);
	if (row === undefined) return [];
	const used = await readUsed(sql, now);
	if (row.limit_key !== null) {
		const { limit_key: key, room_at, ahead } = row;
		const limit = limitOf(limits, key);
		if (limit === null) return [];
		const until_at =
			nextAt(used, limit, { key, room_at, now }) + Math.floor((ahead * limit.window) / limit.count);
		return [{ ...nameLimit(limit, key), until_at }];
	}
	if (row.wake_at > now) return [];
	return onEverything(limits).flatMap(({ key, count }) => {
		const limit = limitOf(limits, key);
		if (limit === null || used.of(key) < count) return [];
		return [{ ...nameLimit(limit, key), until_at: nextAt(used, limit, { key, room_at: now, now }) }];
	});
}

const mostLimits = 50;

export async function holdingLimits(
	sql: Sql,
	now: Micros,
	due: number,
): Promise<Pick<QueueState, 'limits' | 'held'>> {
	const { limits } = await readLimits(sql);
	if (limits.length === 0) return { limits: [], held: 0 };
	const lines = await linesOf(sql, { limits, now, due });
	const found = lines.map(({ limit, key, ...line }): HoldingLimit => ({ ...nameLimit(limit, key), ...line }));
	return {
		limits: found.sort((a, b) => b.messages - a.messages).slice(0, mostLimits),
		held: lines.some(({ limit }) => limit.scope === 'all') ? due : 0,
	};
}
