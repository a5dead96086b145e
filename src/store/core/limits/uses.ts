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
	/** The end of the lease, while the message is leased. */
	wake_at: Micros | null;
	last_at: Micros | null;
}

/** Sorts holds into open ones and uses at a moment. */
interface Holds {
	/** Limits of messages that are under way. */
	readonly open: readonly string[][];
	/** Limits of messages that are settled, or whose lease is over, with the latest time at which they may have been sent. */
	readonly uses: readonly Use[];
	/** Messages whose holds are not open. */
	readonly ended: readonly number[];
}

interface Use {
	key: string;
	at: Micros;
}

export async function readHolds(sql: Sql): Promise<HoldRow[]> {
	return await sql.all<HoldRow>(
		`SELECT h.message_id, h.fence, h.attempts, h.limits,
			m.state, m.fence AS message_fence, m.attempts AS message_attempts, m.wake_at,
			coalesce(m.sent_at, (SELECT max(a.at) FROM attempts a WHERE a.message_id = h.message_id)) AS last_at
		FROM limit_holds h
		LEFT JOIN messages m ON m.id = h.message_id
		ORDER BY h.message_id`,
	);
}

function sortHolds(rows: readonly HoldRow[], now: Micros): Holds {
	const open: string[][] = [];
	const uses: Use[] = [];
	const ended: number[] = [];
	for (const row of rows) {
		// Written by writeHolds, below.
		const keys = parseNames(row.limits);
		const at = usedAt(row, now);
		if (at === 'open') open.push(keys);
		else {
			ended.push(row.message_id);
			if (at !== null) uses.push(...keys.map((key) => ({ key, at })));
		}
	}
	return { open, uses, ended };
}

/** The latest moment at which it may have been sent; null: it was given back unsent. */
function usedAt(hold: HoldRow, now: Micros): Micros | 'open' | null {
	const isSame = hold.message_fence === hold.fence;
	// A worker that lost its lease begins nothing more.
	if (hold.state === 'leased' && isSame)
		return hold.wake_at === null || hold.wake_at > now ? 'open' : hold.wake_at;
	// A clock that was set back since may have recorded an attempt in the future.
	if ((hold.message_attempts ?? 0) > hold.attempts) return Math.min(hold.last_at ?? now, now);
	const waits = hold.state === 'queued' || hold.state === 'deferred';
	return waits && isSame ? null : now;
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

/** Stores what is over by the clock that says `now`. */
export async function closeHolds(sql: Sql, now: Micros): Promise<void> {
	const { ended, uses } = sortHolds(await readHolds(sql), now);
	dropHolds(sql, ended);
	writeUses(sql, uses, now);
}

function dropHolds(sql: Sql, messages: readonly number[]): void {
	if (messages.length > 0)
		sql.write(`DELETE FROM limit_holds WHERE ${sql.dialect.oneOf('message_id')}`, JSON.stringify(messages));
}

/** The messages that count against each limit, as far as its key was read. */
export interface Used {
	of(key: string): number;
	/** When the first of them leaves its window; null: all of them are under way. */
	firstEnd(key: string): Micros | null;
	read(keys: ReadonlySet<string>): Promise<void>;
	addHold(keys: readonly string[]): void;
	/** Removes the holds that are over, before messages are leased again. */
	begin(): void;
	/** Stores what they count as. */
	finish(): void;
}

/** Keys of limits as a table for a statement. */
export const askedKeys = { wanted: 'TEXT' } as const;

/** The value that is bound for it. */
export function keysAsJson(keys: Iterable<string>): string {
	return JSON.stringify([...keys].map((wanted) => ({ wanted })));
}

/** `uses`: stored ones; those of the limits on everything are among them, and are not read later. */
export function createUsed(
	sql: Sql,
	{ holds, uses }: { holds: readonly HoldRow[]; uses: readonly UseRow[] },
	now: Micros,
): Used {
	const sorted = sortHolds(holds, now);
	const known = new Map<string, { count: number; until: Micros | null }>();
	const standing = (key: string) => {
		const found = known.get(key) ?? { count: 0, until: null };
		known.set(key, found);
		return found;
	};
	const addHold = (keys: readonly string[]) => {
		for (const key of keys) standing(key).count += 1;
	};
	const addRow = ({ limit_key, count, until }: UseRow) => {
		const found = standing(limit_key);
		found.count += count;
		found.until = Math.min(found.until ?? until, until);
	};
	for (const keys of sorted.open) addHold(keys);
	for (const row of uses) addRow(row);
	for (const { key, at } of sorted.uses) {
		const until = endOf(key, at);
		if (until > now) addRow({ limit_key: key, count: 1, until });
	}
	const read = new Set<string>();
	return {
		of: (key) => standing(key).count,
		firstEnd: (key) => standing(key).until,
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
		addHold,
		begin: () => dropHolds(sql, sorted.ended),
		finish: () => writeUses(sql, sorted.uses, now),
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
