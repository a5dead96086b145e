import { type Micros, microsPerDay } from '../../api/datetime.js';
import { limitOf, nameLimit, type SendLimit, windowOf } from '../../engine/rules/settings.js';
import type { Operations } from '../operations.js';
import type {
	DeferredDomain,
	HoldingLimit,
	LimitHold,
	QueuePause,
	QueueState,
	QueueWorker,
} from '../queue.js';
import { commonReplies, isSendersRefusal, unfinishedMessages } from './attempts.js';
import { type WaitingLane, waitingLanes } from './campaigns/rows.js';
import {
	isAnyAside,
	onEverything,
	readHolds,
	readLimits,
	readStanding,
	Used,
	type UseRow,
} from './limits.js';
import { countAll, nextDue } from './messages/messages.js';
import { heartbeatFreshMicros, isLost } from './processes.js';
import { column, type Sql } from './sql.js';

const mostDomains = 50;
const mostLimits = 50;

export function createQueueState(sql: Sql) {
	return {
		hasWorker: async ({ now }) => (await findWorkers(sql, now, false)).some(({ role }) => role !== 'send'),
		queueState: async ({ now }): Promise<QueueState> => {
			const lanes = await waitingLanes(sql, now);
			const isAny = (state: 'leased' | 'deferred') => lanes.some((lane) => lane[state] > 0);
			const messages = await countAll(sql, lanes);
			const { failed = 0, bounced = 0, deferred = 0 } = messages;
			const lastWeek = now - 7 * microsPerDay;
			const { due, oldest_at } = await waiting(sql, lanes, now);
			const [room = null] = await column<Micros | null>(sql, 'SELECT min(room_at) FROM limit_rooms');
			const { limits } = await readLimits(sql);
			const lines = limits.length === 0 ? [] : await linesOf(sql, { limits, now, due });
			const found = lines.map(
				({ limit, key, ...line }): HoldingLimit => ({ ...nameLimit(limit, key), ...line }),
			);
			return {
				...{ messages, due, oldest_at },
				next_due_at: (await nextDue(sql, null)) ?? room,
				pauses: (await findPauses(sql)).filter(({ kind }) => kind !== 'refusal'),
				workers: await findWorkers(sql, now, isAny('leased')),
				deferred: isAny('deferred') ? await deferredDomains(sql) : [],
				replies: failed + bounced + deferred > 0 ? await commonReplies(sql, 'created_at > ?', lastWeek) : [],
				unfinished: await unfinishedMessages(sql, now),
				limits: found.sort((a, b) => b.messages - a.messages).slice(0, mostLimits),
				held: lines.some(({ limit }) => limit.scope === 'all') ? due : 0,
			};
		},
		queuePauses: () => findPauses(sql),
		pause: async ({ kind, reason, retry_at, now }) => {
			const fault = kind === 'manual' ? 0 : 1;
			const pause = await sql.get<QueuePause>(
				`INSERT INTO queue_pauses (${columns})
				VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (kind) DO UPDATE
				SET reason = excluded.reason, faults = queue_pauses.faults + excluded.faults,
					retry_at = CASE
						WHEN queue_pauses.retry_at > excluded.retry_at THEN queue_pauses.retry_at ELSE excluded.retry_at END
				RETURNING ${columns}`,
				[kind, reason, now, retry_at, fault],
			);
			if (pause === undefined) throw new Error('a row that was just written is not there');
			return pause;
		},
		resume: async ({ kinds, retry_at }) => {
			let changes = 0;
			for (const kind of kinds) {
				const deleted = await sql.run('DELETE FROM queue_pauses WHERE kind = ?', [kind]);
				if (kind !== 'refusal') changes += deleted.changes;
			}
			if (retry_at !== undefined)
				await sql.run(
					`UPDATE messages AS m
					SET due_at = ?, wake_at = ?
					WHERE wake_at IS NOT NULL AND wake_at > ? AND state = 'deferred' AND ${isSendersRefusal}`,
					[retry_at, retry_at, retry_at],
				);
			return changes > 0;
		},
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

const columns = 'kind, reason, since, retry_at, faults';

async function findPauses(sql: Sql): Promise<QueuePause[]> {
	return await sql.all<QueuePause>(`SELECT ${columns} FROM queue_pauses ORDER BY kind <> 'manual', kind`);
}

async function waiting(
	sql: Sql,
	lanes: readonly WaitingLane[],
	now: Micros,
): Promise<Pick<QueueState, 'due' | 'oldest_at'>> {
	let due = 0;
	let oldest_at: Micros | null = null;
	for (const { state, opens_at, released_at, first, due: ofLane } of lanes) {
		if (state !== null && state !== 'released') continue;
		if (opens_at === null || opens_at <= now) due += ofLane;
		const since = released_at ?? (await sql.number('SELECT created_at FROM messages WHERE id = ?', [first]));
		oldest_at = Math.min(oldest_at ?? since, since);
	}
	return { due, oldest_at };
}

async function deferredDomains(sql: Sql): Promise<DeferredDomain[]> {
	const { position, using } = sql.dialect;
	// A quoted local part may contain @. `rtrim` keeps the text up to the last @, and `replace` removes that text.
	const domain = `CASE
		WHEN m.to_key LIKE '"%' THEN replace(m.to_key, rtrim(m.to_key, replace(m.to_key, '@', '')), '')
		ELSE substr(m.to_key, ${position}(m.to_key, '@') + 1)
	END`;
	// Messages of a campaign have its `seq` as their lane, so the query need not join submissions.
	const deferred = `FROM messages m ${using('messages_due')}
		LEFT JOIN campaigns g ON g.seq = m.lane
		WHERE m.state = 'deferred' AND m.wake_at IS NOT NULL AND (g.state IS NULL OR g.state = 'released')
			AND NOT ${isSendersRefusal}`;
	const groups = await sql.all<Omit<DeferredDomain, 'last_reply'> & { last_at: Micros }>(
		`SELECT ${domain} AS domain, count(*) AS messages, min(m.due_at) AS next_due_at, max(m.due_at) AS last_at
		${deferred}
		GROUP BY 1
		ORDER BY 2 DESC, 1
		LIMIT ${mostDomains}`,
	);
	if (groups.length === 0) return [];
	// Read only the last due message of each domain, because sorting all messages costs ten times as much.
	const each = groups.map(() => '?').join(', ');
	const last = await sql.all<{ domain: string; due_at: Micros; last_reply: string | null }>(
		`SELECT l.domain, l.due_at, m.last_reply
		FROM (
			SELECT ${domain} AS domain, m.due_at, min(m.id) AS id
			${deferred} AND m.due_at IN (${each})
			GROUP BY 1, 2
		) l
		JOIN messages m ON m.id = l.id
		WHERE l.domain IN (${each})`,
		[...groups.map(({ last_at }) => last_at), ...groups.map((group) => group.domain)],
	);
	return groups.map(({ last_at, ...group }) => {
		const own = last.find(({ domain, due_at }) => domain === group.domain && due_at === last_at);
		return { ...group, last_reply: own?.last_reply ?? null };
	});
}

/** Finds processes that hold or could take leases. `role` is null if the process has ended. */
async function findWorkers(sql: Sql, now: Micros, areLeased: boolean): Promise<QueueWorker[]> {
	const workers = new Map<string, QueueWorker>();
	const known = await sql.all<{ id: string; role: string; host: string; pid: number; heard_at: Micros }>(
		'SELECT id, role, host, pid, heartbeat_at AS heard_at FROM processes WHERE heartbeat_at > ? ORDER BY id',
		[now - heartbeatFreshMicros],
	);
	for (const { id, role, host, pid, heard_at } of known) {
		const worker = { role: isLost({ id, pid }) ? null : role, host, pid, messages: 0, heard_at };
		workers.set(`${host}:${pid}`, worker);
	}
	const leases = `SELECT lease_owner, count(*)
		FROM messages ${sql.dialect.using('messages_due')}
		WHERE wake_at IS NOT NULL AND state = 'leased' AND lease_owner IS NOT NULL
		GROUP BY lease_owner
		ORDER BY lease_owner`;
	for (const [owner, count] of areLeased ? await sql.tuples<[string, number]>(leases) : []) {
		const [host = '', pid = ''] = owner.split(':');
		const name = `${host}:${pid}`;
		const { role = null, messages = 0, heard_at = null } = workers.get(name) ?? {};
		workers.set(name, { role, host, pid: Number(pid), messages: messages + count, heard_at });
	}
	return [...workers.values()].filter(
		({ role, messages }) => messages > 0 || role === 'serve' || role === 'worker' || role === 'send',
	);
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
			-- Uses the index limit_waiting_in_order.
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
