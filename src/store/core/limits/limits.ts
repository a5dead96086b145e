/**
 * Limits on sending, shared by all processes: never more than N messages in any time of the window's length.
 *
 * A message counts from its lease, as a hold. It may be sent at any moment until it is settled, so it goes on counting
 * for one window after that, as a use. A crash leaves a hold behind, which counts until the message is leased again.
 * Uses are kept by slices of a 128th of the window.
 *
 * A message whose limit is used up is put back with a turn of its own (`wake_at`; `due_at` stays). A million messages
 * to one domain wake one by one as there is room, not all at each lease, and messages behind them do not wait.
 */
import { domainOf } from '../../../api/address.js';
import type { Micros } from '../../../api/datetime.js';
import { type CountedLimit, limitsOn, type SendLimit, windowOf } from '../../../engine/rules/limits.js';
import { parseNames, readEnvelope } from '../rows.js';
import type { Sql } from '../sql.js';

/** A message that may be leased. */
export interface Candidate {
	id: number;
	to_key: string;
	submission_seq: number;
	fence: number;
	attempts: number;
}

/** The limits during one lease; to be finished in the same operation. */
export interface Limiter {
	/** The number of messages that the limits on everything leave to lease. */
	readonly room: number;
	/** Enough messages of the lane were put back that other lanes get their turn first: more may be due. */
	readonly isLaneFull: boolean;
	/** Some lane was full. */
	readonly isCut: boolean;
	/** The following messages are of another lane. */
	startLane(): void;
	/** True: it counts from now on. False: it was put back. */
	admit(candidate: Candidate, type: 'TRANSACTIONAL' | 'BULK'): Promise<boolean>;
	finish(): Promise<void>;
}

/** In one lane and one lease: each costs two statements, and other writers wait for the lock. */
const mostPutBack = 1_000;

/** `limits` is not empty. */
export async function openLimiter(sql: Sql, limits: readonly SendLimit[], now: Micros): Promise<Limiter> {
	const holds = await createHolds(sql, now);
	const used = await createUsed(sql, holds, now);
	const lines = createLines(sql, now);
	const senders = new Map<number, string>();
	const senderOf = async (submission: number) => {
		const sender = senders.get(submission) ?? (await readSender(sql, submission));
		senders.set(submission, sender);
		return sender;
	};
	let room = Number.POSITIVE_INFINITY;
	for (const { key, count } of limitsOn(limits, { sender: '', recipient: '' }))
		if (key.startsWith('all ')) room = Math.min(room, count - (await used.of(key)));
	let putBack = 0;
	let isCut = false;
	return {
		room,
		get isLaneFull() {
			return putBack >= mostPutBack;
		},
		get isCut() {
			return isCut;
		},
		startLane() {
			putBack = 0;
		},
		async admit(candidate, type) {
			// Its lease ran out: the outcome is unknown, so it counts as sent just now.
			used.addUses(holds.giveUp(candidate.id), now);
			const message = {
				sender: await senderOf(candidate.submission_seq),
				recipient: domainOf(candidate.to_key),
			};
			const counted = limitsOn(limits, message);
			const full: typeof counted = [];
			for (const limit of counted) if ((await used.of(limit.key)) >= limit.count) full.push(limit);
			if (full.length === 0) {
				const keys = counted.map(({ key }) => key);
				await holds.take(candidate, keys);
				await used.addHold(keys);
				return true;
			}
			putBack += 1;
			isCut ||= putBack >= mostPutBack;
			await lines.putBack(candidate.id, type, full);
			return false;
		},
		finish: async () => {
			await used.finish();
			await lines.finish();
		},
	};
}

/** `Name <news@example.com>` and what stands in a sender's limit for it. */
export function senderDomain(from: string): string {
	return domainOf(from.replace(/>\s*$/, ''));
}

async function readSender(sql: Sql, submission: number): Promise<string> {
	const row = await sql.get<{ envelope: string }>(
		'SELECT envelope FROM submissions WHERE seq = ?',
		submission,
	);
	return row === undefined ? '' : senderDomain(readEnvelope(row.envelope).from);
}

interface HoldRow {
	message_id: number;
	fence: number;
	attempts: number;
	limits: string;
	state: string | null;
	message_fence: number | null;
	message_attempts: number | null;
	last_at: Micros | null;
}

/** Messages that count and are not known to be settled. */
interface Holds {
	/** Holds of messages that are still leased. */
	readonly open: readonly string[][];
	/** Holds of messages settled since, with the latest time at which they may have been sent. */
	readonly closed: readonly { keys: string[]; at: Micros }[];
	/** The limits of a message whose lease ran out; none when it has no hold. */
	giveUp(message: number): string[];
	take(candidate: Candidate, keys: readonly string[]): Promise<void>;
}

async function createHolds(sql: Sql, now: Micros): Promise<Holds> {
	const open = new Map<number, string[]>();
	const closed: { keys: string[]; at: Micros }[] = [];
	const rows = await sql.all<HoldRow>(
		`SELECT h.message_id, h.fence, h.attempts, h.limits,
			m.state, m.fence AS message_fence, m.attempts AS message_attempts,
			coalesce(m.sent_at, (SELECT max(a.at) FROM attempts a WHERE a.message_id = h.message_id)) AS last_at
		FROM limit_holds h
		LEFT JOIN messages m ON m.id = h.message_id
		ORDER BY h.message_id`,
	);
	for (const row of rows) {
		// Written by take, below.
		const keys = parseNames(row.limits);
		if (row.state === 'leased' && row.message_fence === row.fence) {
			open.set(row.message_id, keys);
			continue;
		}
		const at = usedAt(row, now);
		if (at !== null) closed.push({ keys, at });
		sql.write('DELETE FROM limit_holds WHERE message_id = ?', row.message_id);
	}
	return {
		open: [...open.values()],
		closed,
		giveUp: (message) => open.get(message) ?? [],
		take: async ({ id, fence, attempts }, keys) => {
			sql.write(
				`INSERT INTO limit_holds (message_id, fence, attempts, limits)
				VALUES (?, ?, ?, ?)
				ON CONFLICT (message_id) DO UPDATE
				SET fence = excluded.fence, attempts = excluded.attempts, limits = excluded.limits`,
				id,
				fence + 1,
				attempts,
				JSON.stringify(keys),
			);
		},
	};
}

/** The latest moment at which it may have been sent; null: it was given back unsent. */
function usedAt(hold: HoldRow, now: Micros): Micros | null {
	// An attempt by a clock that was set back since is no use of the future.
	if ((hold.message_attempts ?? 0) > hold.attempts) return Math.min(hold.last_at ?? now, now);
	const waits = hold.state === 'queued' || hold.state === 'deferred';
	return waits && hold.message_fence === hold.fence ? null : now;
}

/** Counts as used what was settled since the last call, by the clock that says `now`. */
export async function closeHolds(sql: Sql, now: Micros): Promise<void> {
	await createUsed(sql, await createHolds(sql, now), now);
}

/** The messages that count against each limit. */
async function createUsed(sql: Sql, holds: Holds, now: Micros) {
	const uses: { key: string; at: Micros }[] = holds.closed.flatMap(({ keys, at }) =>
		keys.map((key) => ({ key, at })),
	);
	writeUses(sql, uses, now);
	const late: { key: string; at: Micros }[] = [];
	const counts = new Map<string, number>();
	const ofKey = async (key: string) => {
		const known = counts.get(key);
		if (known !== undefined) return known;
		const sent = await sql.number(
			'SELECT coalesce(sum(count), 0) FROM limit_uses WHERE limit_key = ? AND until > ?',
			key,
			now,
		);
		return sent + holds.open.filter((keys) => keys.includes(key)).length;
	};
	const add = async (keys: readonly string[]) => {
		for (const key of keys) counts.set(key, (await ofKey(key)) + 1);
	};
	return {
		of: ofKey,
		addHold: add,
		/** The hold itself is still open, so the count stays the same. */
		addUses: (keys: readonly string[], at: Micros) => void late.push(...keys.map((key) => ({ key, at }))),
		finish: () => writeUses(sql, late, now),
	};
}

/** Messages that wait for a limit, and when the next of them gets a turn. */
function createLines(sql: Sql, now: Micros) {
	const turns = new Map<string, { key: string; line: number; next: Micros }>();
	const turnOf = async ({ key, count, window }: CountedLimit, line: number) => {
		const name = `${line} ${key}`;
		const turn =
			turns.get(name)?.next ??
			Math.max((await readTurn(sql, key, line)) ?? 0, await firstRoom(sql, key, now));
		turns.set(name, { key, line, next: turn + Math.ceil(window / count) });
		return turn;
	};
	return {
		putBack: async (message: number, type: 'TRANSACTIONAL' | 'BULK', full: readonly CountedLimit[]) => {
			const line = lineOf(type, await hasWaited(sql, message));
			let turn: Micros = 0;
			for (const limit of full) turn = Math.max(turn, await turnOf(limit, line));
			sql.write(
				`UPDATE messages
				SET wake_at = ?, lease_owner = NULL, state = CASE state WHEN 'leased' THEN 'queued' ELSE state END
				WHERE id = ?`,
				turn,
				message,
			);
		},
		finish: async () => {
			for (const { key, line, next } of turns.values()) {
				sql.write(
					`INSERT INTO limit_lines (limit_key, line, next_turn)
					VALUES (?, ?, ?)
					ON CONFLICT (limit_key, line) DO UPDATE SET next_turn = excluded.next_turn`,
					key,
					line,
					next,
				);
			}
			sql.write('DELETE FROM limit_lines WHERE next_turn <= ?', now);
		},
	};
}

/** A message that waited and found no room at its turn does not go to the end of the line. */
function lineOf(type: 'TRANSACTIONAL' | 'BULK', hasWaited: boolean): number {
	return (type === 'BULK' ? 1 : 0) + (hasWaited ? 2 : 0);
}

async function hasWaited(sql: Sql, message: number): Promise<boolean> {
	return (
		(await sql.number(
			"SELECT state <> 'leased' AND wake_at > due_at FROM messages WHERE id = ?",
			message,
		)) === 1
	);
}

async function readTurn(sql: Sql, key: string, line: number): Promise<Micros | null> {
	const row = await sql.get<{ next_turn: Micros }>(
		'SELECT next_turn FROM limit_lines WHERE limit_key = ? AND line = ?',
		key,
		line,
	);
	return row?.next_turn ?? null;
}

/** While every message that counts is leased, there is no room before a window has passed. */
async function firstRoom(sql: Sql, key: string, now: Micros): Promise<Micros> {
	const row = await sql.get<{ until: Micros | null }>(
		'SELECT min(until) AS until FROM limit_uses WHERE limit_key = ? AND until > ?',
		key,
		now,
	);
	return row?.until ?? now + windowOf(key);
}

/**
 * Rows for each window. A use counts one slice longer than the slice in which it was sent: the clocks of two processes
 * are at least a millisecond apart, and three workers sent 61 where 60 were allowed.
 */
const slices = 128;

/** Adds uses, and deletes those that have left their window. */
export function writeUses(sql: Sql, uses: readonly { key: string; at: Micros }[], now: Micros): void {
	// limit_uses_by_end
	sql.write('DELETE FROM limit_uses WHERE until <= ?', now);
	const counts = new Map<string, { key: string; until: Micros; count: number }>();
	for (const { key, at } of uses) {
		const until = endOf(key, at);
		const counted = counts.get(`${until} ${key}`) ?? { key, until, count: 0 };
		counted.count += 1;
		counts.set(`${until} ${key}`, counted);
	}
	for (const { key, until, count } of counts.values()) {
		sql.write(
			`INSERT INTO limit_uses (limit_key, until, count)
			VALUES (?, ?, ?)
			ON CONFLICT (limit_key, until) DO UPDATE SET count = limit_uses.count + excluded.count`,
			key,
			until,
			count,
		);
	}
}

/** When the slice of the send, and the next, have left the window. */
function endOf(key: string, at: Micros): Micros {
	const window = windowOf(key);
	const slice = Math.ceil(window / slices);
	return (Math.floor(at / slice) + 2) * slice + window;
}
