/** Which limits hold messages back at this moment, and until when: for people, not for a lease. */

import { domainOf } from '../../../api/address.js';
import type { Micros } from '../../../api/datetime.js';
import { type CountedLimit, limitOf, limitsOn, nameLimit, windowOf } from '../../../engine/rules/limits.js';
import type { Operations } from '../../operations.js';
import type { HoldingLimit, LimitHold, LimitWait, QueueState } from '../../queue.js';
import { readEnvelope } from '../rows.js';
import type { Sql } from '../sql.js';
import { senderDomain } from './limits.js';
import { readLimits, wakesNow } from './turns.js';
import { createUsed, readHolds, type UseRow } from './uses.js';

/** Only reads, and only limits of the settings; the rate of a worker is not among them. */
export function createLimitHolders(sql: Sql) {
	return {
		holdsOfMessage: ({ id, now }) => holdsOfMessage(sql, id, now),
		limitWaits: ({ now }) => limitWaits(sql, now),
	} satisfies Partial<Operations>;
}

/** The current limits: what counts against each, and how far their lines reach. */
interface Standing {
	isFull(limit: CountedLimit): boolean;
	/** When there is room again, for a limit that is full. */
	roomAt(key: string): Micros;
	/** The next turn to be given; null: no message waits for it. */
	lineEnd(key: string): Micros | null;
	readonly lines: ReadonlyMap<string, Micros>;
}

async function readStanding(sql: Sql, now: Micros): Promise<Standing> {
	const [holds, uses] = await sql.together([
		() => readHolds(sql),
		() =>
			sql.all<UseRow>(
				'SELECT limit_key, sum(count) AS count, min(until) AS until FROM limit_uses WHERE until > ? GROUP BY limit_key',
				now,
			),
	]);
	const used = createUsed(sql, { holds, uses }, now);
	const lines = new Map(
		(
			await sql.all<{ limit_key: string; next_turn: Micros }>(
				'SELECT limit_key, max(next_turn) AS next_turn FROM limit_lines WHERE next_turn > ? GROUP BY limit_key',
				now,
			)
		).map(({ limit_key, next_turn }) => [limit_key, next_turn]),
	);
	return {
		isFull: ({ key, count }) => used.of(key) >= count,
		roomAt: (key) => used.firstEnd(key) ?? now + windowOf(key),
		lineEnd: (key) => lines.get(key) ?? null,
		lines,
	};
}

interface MessageRow {
	to_key: string;
	envelope: string;
	wake_at: Micros;
	due_at: Micros;
}

export async function holdsOfMessage(sql: Sql, uuid: string, now: Micros): Promise<LimitHold[]> {
	const limits = await readLimits(sql);
	const row = await sql.get<MessageRow>(
		`SELECT m.to_key, s.envelope, m.wake_at, m.due_at
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE m.uuid = ? AND m.wake_at IS NOT NULL AND m.state <> 'leased'
			AND (g.state IS NULL OR g.state = 'released')`,
		uuid,
	);
	if (row === undefined || limits.length === 0) return [];
	const hasTurn = row.wake_at > row.due_at && row.wake_at > now;
	if (!hasTurn && row.wake_at > now) return [];
	const standing = await readStanding(sql, now);
	return limitsOn(limits, {
		sender: senderDomain(readEnvelope(row.envelope).from),
		recipient: domainOf(row.to_key),
	})
		.filter((limit) => (hasTurn ? (standing.lineEnd(limit.key) ?? 0) > row.wake_at : standing.isFull(limit)))
		.flatMap(({ key }) => {
			const limit = limitOf(limits, key);
			const until_at = hasTurn ? row.wake_at : standing.roomAt(key);
			return limit === null ? [] : [{ ...nameLimit(limit, key), until_at }];
		});
}

async function limitWaits(sql: Sql, now: Micros): Promise<LimitWait[]> {
	const limits = await readLimits(sql);
	if (limits.length === 0) return [];
	const standing = await readStanding(sql, now);
	const longest = new Map(limits.map((limit) => [limit, 0]));
	for (const [key, end] of standing.lines) {
		const limit = limitOf(limits, key);
		if (limit === null) continue;
		const step = Math.ceil(limit.window / limit.count);
		longest.set(limit, Math.max(longest.get(limit) ?? 0, end - step - now));
	}
	for (const limit of limits.filter(({ scope }) => scope === 'all')) {
		const [counted] = limitsOn([limit], { sender: '', recipient: '' });
		if (counted !== undefined && standing.isFull(counted) && (await wakesNow(sql, now)))
			longest.set(limit, Math.max(0, standing.roomAt(counted.key) - now));
	}
	return [...longest].map(([limit, wait]) => {
		const { domain: _, ...name } = nameLimit(limit, '');
		return { ...name, wait };
	});
}

interface Group {
	recipient: string;
	sender: string | null;
	/** Could be leased now, if no limit were full. */
	due: number;
	/** Have a turn to come. */
	held: number;
	first: Micros | null;
	last: Micros | null;
}

const mostLimits = 50;

/**
 * Reads all waiting messages. `domain` is SQL for the domain of the recipient, `onItsWay` for messages that are to be
 * sent at all; in `from` messages are `m`.
 */
export async function holdingLimits(
	sql: Sql,
	now: Micros,
	{ from, onItsWay, domain }: { from: string; onItsWay: string; domain: string },
): Promise<Pick<QueueState, 'limits' | 'held'>> {
	const limits = await readLimits(sql);
	if (limits.length === 0) return { limits: [], held: 0 };
	// A sender stands in the JSON of its submission, which costs time to read.
	const isBySender = limits.some(({ scope }) => scope === 'sender');
	const groups = await sql.all<Group>(
		`SELECT ${domain} AS recipient, ${isBySender ? sql.dialect.jsonText('s.envelope', 'from') : 'NULL'} AS sender,
			count(*) FILTER (WHERE m.wake_at <= ?) AS due, count(*) FILTER (WHERE m.wake_at > ?) AS held,
			min(CASE WHEN m.wake_at > ? THEN m.wake_at END) AS first,
			max(CASE WHEN m.wake_at > ? THEN m.wake_at END) AS last
		FROM ${from}${isBySender ? ' JOIN submissions s ON s.seq = m.submission_seq' : ''}
		WHERE ${onItsWay} AND m.state <> 'leased' AND (m.wake_at <= ? OR m.wake_at > m.due_at)
		GROUP BY 1, 2
		ORDER BY 1, 2`,
		...[now, now, now, now, now],
	);
	const standing = await readStanding(sql, now);
	const holding = new Map<string, HoldingLimit>();
	let allHeld = 0;
	for (const group of groups) {
		const message = { sender: senderDomain(group.sender ?? ''), recipient: group.recipient };
		const own = limitsOn(limits, message);
		// Once, for any number of limits.
		if (own.some((limit) => standing.isFull(limit))) allHeld += group.due;
		for (const limit of own) {
			const held = heldOf(group, limit, standing);
			const named = limitOf(limits, limit.key);
			if (held === null || named === null) continue;
			const known = holding.get(limit.key) ?? null;
			holding.set(
				limit.key,
				known === null ? { ...nameLimit(named, limit.key), ...held } : joined(known, held),
			);
		}
	}
	const found = [...holding.values()].sort((a, b) => b.messages - a.messages);
	return { limits: found.slice(0, mostLimits), held: allHeld };
}

type Held = Pick<HoldingLimit, 'messages' | 'next_at' | 'last_at'>;

/** A message that waits for several limits counts for each. Null: this limit holds none of them. */
function heldOf({ due, held, first, last }: Group, limit: CountedLimit, standing: Standing): Held | null {
	const end = standing.lineEnd(limit.key);
	const inLine =
		first !== null && last !== null && end !== null && end > first
			? { messages: held, next_at: first, last_at: last }
			: null;
	if (due === 0 || !standing.isFull(limit)) return inLine;
	const room = standing.roomAt(limit.key);
	// As they will be put back: one turn each, behind those that have one.
	const last_at = Math.max(end ?? 0, room) + Math.floor(((due - 1) * limit.window) / limit.count);
	const looking = { messages: due, next_at: room, last_at };
	return inLine === null ? looking : joined(inLine, looking);
}

function joined<T extends Held>(one: T, other: Held): T {
	return {
		...one,
		messages: one.messages + other.messages,
		next_at: Math.min(one.next_at, other.next_at),
		last_at: Math.max(one.last_at, other.last_at),
	};
}
