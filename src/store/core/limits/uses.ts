/** The messages that count against limits: holds of those that may be sent at any moment, and uses of those that were. */
import type { Micros } from '../../../api/datetime.js';
import { windowOf } from '../../../engine/rules/limits.js';
import { parseNames } from '../rows.js';
import type { Insertion, Sql } from '../sql.js';

/** What counts against a limit besides holds. */
export interface UseRow {
	limit_key: string;
	/** Sent within the window. */
	count: number;
	/** When the first of them leaves it. */
	until: Micros;
}

/** A hold, with its message. */
export interface HoldRow {
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
export interface Holds {
	/** Holds of messages that are still leased. */
	readonly open: readonly string[][];
	/** Holds of messages settled since, with the latest time at which they may have been sent. */
	readonly closed: readonly { keys: string[]; at: Micros }[];
	/** The limits of a message whose lease ran out; none when it has no hold. */
	giveUp(message: number): string[];
}

export async function readHolds(sql: Sql): Promise<HoldRow[]> {
	return await sql.all<HoldRow>(
		`SELECT h.message_id, h.fence, h.attempts, h.limits,
			m.state, m.fence AS message_fence, m.attempts AS message_attempts,
			coalesce(m.sent_at, (SELECT max(a.at) FROM attempts a WHERE a.message_id = h.message_id)) AS last_at
		FROM limit_holds h
		LEFT JOIN messages m ON m.id = h.message_id
		ORDER BY h.message_id`,
	);
}

/** Deletes those of messages that were settled. */
export function closeSettled(sql: Sql, rows: readonly HoldRow[], now: Micros): Holds {
	const open = new Map<number, string[]>();
	const closed: { keys: string[]; at: Micros }[] = [];
	const gone: number[] = [];
	for (const row of rows) {
		// Written by writeHolds, below.
		const keys = parseNames(row.limits);
		if (row.state === 'leased' && row.message_fence === row.fence) {
			open.set(row.message_id, keys);
			continue;
		}
		const at = usedAt(row, now);
		if (at !== null) closed.push({ keys, at });
		gone.push(row.message_id);
	}
	if (gone.length > 0)
		sql.write(`DELETE FROM limit_holds WHERE ${sql.dialect.oneOf('message_id')}`, JSON.stringify(gone));
	return { open: [...open.values()], closed, giveUp: (message) => open.get(message) ?? [] };
}

/** A message, as it is before its lease. */
interface Held {
	id: number;
	fence: number;
	attempts: number;
}

const intoHolds: Insertion = {
	table: 'limit_holds',
	columns: { message_id: 'BIGINT', fence: 'BIGINT', attempts: 'BIGINT', limits: 'TEXT' },
	key: 'message_id',
	id: 'message_id',
	conflict: `ON CONFLICT (message_id) DO UPDATE
		SET fence = excluded.fence, attempts = excluded.attempts, limits = excluded.limits`,
};

/** Messages count from now on. */
export function writeHolds(sql: Sql, taken: readonly { candidate: Held; keys: readonly string[] }[]): void {
	sql.writeAll(
		intoHolds,
		// In the order of the columns.
		taken.map(({ candidate: { id, fence, attempts }, keys }) => [
			...[id, fence + 1, attempts],
			JSON.stringify(keys),
		]),
	);
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
	const holds = closeSettled(sql, await readHolds(sql), now);
	writeUses(sql, usesOf(holds), now);
}

interface Use {
	key: string;
	at: Micros;
}

function usesOf({ closed }: Holds): Use[] {
	return closed.flatMap(({ keys, at }) => keys.map((key) => ({ key, at })));
}

/** The messages that count against each limit, as far as its key was read. */
export interface Used {
	read(keys: ReadonlySet<string>): Promise<void>;
	of(key: string): number;
	/** While every message that counts is leased, there is no room before a window has passed. */
	firstRoom(key: string): Micros;
	addHold(keys: readonly string[]): void;
	/** The hold itself is still open, so the count stays the same. */
	addUses(keys: readonly string[], at: Micros): void;
	finish(): void;
}

/** Keys of limits as a table for a statement. */
export const askedKeys = { wanted: 'TEXT' } as const;

/** The value that is bound for it. */
export function keysAsJson(keys: Iterable<string>): string {
	return JSON.stringify([...keys].map((wanted) => ({ wanted })));
}

/** Counts those as used that were settled. `uses`: of the limits on everything, of which none is read later. */
export function createUsed(
	sql: Sql,
	{ holds, uses, now }: { holds: Holds; uses: readonly UseRow[]; now: Micros },
): Used {
	const closed = usesOf(holds);
	writeUses(sql, closed, now);
	const late: Use[] = [];
	const known = new Map<string, { count: number; until: Micros | null }>();
	const held = new Map<string, number>();
	for (const keys of holds.open) for (const key of keys) held.set(key, (held.get(key) ?? 0) + 1);
	const standing = (key: string) => {
		const found = known.get(key) ?? { count: held.get(key) ?? 0, until: null };
		known.set(key, found);
		return found;
	};
	const addRow = ({ limit_key, count, until }: UseRow) => {
		const found = standing(limit_key);
		found.count += count;
		found.until = Math.min(found.until ?? until, until);
	};
	for (const row of uses) addRow(row);
	// The others are read behind their write.
	for (const { key, at } of closed) {
		const until = endOf(key, at);
		if (key.startsWith('all ') && until > now) addRow({ limit_key: key, count: 1, until });
	}
	const read = new Set<string>();
	return {
		read: async (keys) => {
			const fresh = [...keys].filter((key) => !key.startsWith('all ') && !read.has(key));
			if (fresh.length === 0) return;
			for (const key of fresh) read.add(key);
			const rows = await sql.all<UseRow>(
				`SELECT u.limit_key, sum(u.count) AS count, min(u.until) AS until
				FROM ${sql.dialect.table(askedKeys, 'asked')}
				CROSS JOIN limit_uses u
				WHERE u.limit_key = asked.wanted AND u.until > ?
				GROUP BY u.limit_key`,
				keysAsJson(fresh),
				now,
			);
			for (const row of rows) addRow(row);
		},
		of: (key) => standing(key).count,
		firstRoom: (key) => standing(key).until ?? now + windowOf(key),
		addHold: (keys) => {
			for (const key of keys) standing(key).count += 1;
		},
		addUses: (keys, at) => void late.push(...keys.map((key) => ({ key, at }))),
		finish: () => writeUses(sql, late, now),
	};
}

/**
 * Rows for each window. A use counts one slice longer than the slice in which it was sent: the clocks of two processes
 * are at least a millisecond apart, and three workers sent 61 where 60 were allowed.
 */
const slices = 128;

const intoUses: Insertion = {
	table: 'limit_uses',
	columns: { limit_key: 'TEXT', until: 'BIGINT', count: 'BIGINT' },
	key: 'limit_key',
	id: 'until',
	conflict: 'ON CONFLICT (limit_key, until) DO UPDATE SET count = limit_uses.count + excluded.count',
};

/** Adds uses, and deletes those that have left their window. */
function writeUses(sql: Sql, uses: readonly Use[], now: Micros): void {
	// limit_uses_by_end
	sql.write('DELETE FROM limit_uses WHERE until <= ?', now);
	const counts = new Map<string, { key: string; until: Micros; count: number }>();
	for (const { key, at } of uses) {
		const until = endOf(key, at);
		const counted = counts.get(`${until} ${key}`) ?? { key, until, count: 0 };
		counted.count += 1;
		counts.set(`${until} ${key}`, counted);
	}
	const rows = [...counts.values()].map(({ key, until, count }) => [key, until, count]);
	sql.writeAll(intoUses, rows);
}

/** When the slice of the send, and the next, have left the window. */
function endOf(key: string, at: Micros): Micros {
	const window = windowOf(key);
	const slice = Math.ceil(window / slices);
	return (Math.floor(at / slice) + 2) * slice + window;
}
