import { type Micros, microsPerSecond } from '../../../api/datetime.js';
import { windowOf } from '../../../engine/rules/limits.js';
import { parseNames } from '../rows.js';
import type { Insertion, Sql } from '../sql.js';

export interface UseRow {
	limit_key: string;
	count: number;
	until: Micros;
}

export interface HoldRow {
	message_id: number;
	fence: number;
	attempts: number;
	limits: string;
	state: string | null;
	message_fence: number | null;
	message_attempts: number | null;
	wake_at: Micros | null;
	last_at: Micros | null;
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

/** While only messages under way fill a limit, any of them may go back unsent. */
const lookAgainAfter: Micros = microsPerSecond;

export class Used {
	readonly #sql: Sql;
	readonly #now: Micros;
	readonly #known = new Map<string, { count: number; until: Micros | null }>();
	readonly #read = new Set<string>();
	readonly #ended: number[] = [];
	readonly #newUses: { key: string; at: Micros }[] = [];

	constructor(
		sql: Sql,
		{ holds, uses }: { holds: readonly HoldRow[]; uses: readonly UseRow[] },
		now: Micros,
	) {
		this.#sql = sql;
		this.#now = now;
		for (const row of uses) this.#add(row);
		for (const hold of holds) {
			const keys = parseNames(hold.limits);
			const at = usedAt(hold, now);
			if (at === 'open') for (const key of keys) this.#add({ limit_key: key, count: 1, until: null });
			else this.#ended.push(hold.message_id);
			if (at === 'open' || at === null) continue;
			for (const key of keys) {
				this.#newUses.push({ key, at });
				const until = endOf(key, at);
				if (until > now) this.#add({ limit_key: key, count: 1, until });
			}
		}
	}

	of(key: string): number {
		return this.#known.get(key)?.count ?? 0;
	}

	firstEnd(key: string): Micros | null {
		return this.#known.get(key)?.until ?? null;
	}

	roomAt(key: string): Micros {
		return this.firstEnd(key) ?? this.#now + lookAgainAfter;
	}

	async read(keys: Iterable<string>): Promise<void> {
		const fresh = [...new Set(keys)].filter((key) => !key.startsWith('all ') && !this.#read.has(key));
		if (fresh.length === 0) return;
		for (const key of fresh) this.#read.add(key);
		const sql = this.#sql;
		const rows = await sql.all<UseRow>(
			`SELECT u.limit_key, sum(u.count) AS count, min(u.until) AS until
			FROM ${sql.dialect.table({ wanted: 'TEXT' }, 'asked')}
			CROSS JOIN limit_uses u
			WHERE u.limit_key = asked.wanted AND u.until > ?
			GROUP BY u.limit_key`,
			[JSON.stringify(fresh.map((wanted) => ({ wanted }))), this.#now],
		);
		for (const row of rows) this.#add(row);
	}

	take(keys: readonly string[]): void {
		for (const key of keys) this.#add({ limit_key: key, count: 1, until: null });
	}

	begin(): void {
		if (this.#ended.length === 0) return;
		const ended = this.#sql.dialect.oneOf('message_id');
		this.#sql.write(`DELETE FROM limit_holds WHERE ${ended}`, [JSON.stringify(this.#ended)]);
	}

	finish(): void {
		this.#sql.write('DELETE FROM limit_uses WHERE until <= ?', [this.#now]);
		const counts = new Map<string, [key: string, until: Micros, count: number]>();
		for (const { key, at } of this.#newUses) {
			const until = endOf(key, at);
			const [, , count] = counts.get(`${until} ${key}`) ?? [key, until, 0];
			counts.set(`${until} ${key}`, [key, until, count + 1]);
		}
		this.#sql.writeAll(intoUses, [...counts.values()]);
	}

	#add({ limit_key, count, until }: { limit_key: string; count: number; until: Micros | null }): void {
		const found = this.#known.get(limit_key) ?? { count: 0, until: null };
		found.count += count;
		if (until !== null) found.until = Math.min(found.until ?? until, until);
		this.#known.set(limit_key, found);
	}
}

export async function closeHolds(sql: Sql, now: Micros): Promise<void> {
	const used = new Used(sql, { holds: await readHolds(sql), uses: [] }, now);
	used.begin();
	used.finish();
}

const intoHolds: Insertion = {
	table: 'limit_holds',
	columns: { message_id: 'BIGINT', fence: 'BIGINT', attempts: 'BIGINT', limits: 'TEXT' },
	conflict: `ON CONFLICT (message_id) DO UPDATE
		SET fence = excluded.fence, attempts = excluded.attempts, limits = excluded.limits`,
};

interface Held {
	candidate: { id: number; fence: number; attempts: number };
	keys: readonly string[];
}

export function writeHolds(sql: Sql, taken: readonly Held[]): void {
	const rows = taken
		.filter(({ keys }) => keys.length > 0)
		.map(({ candidate: { id, fence, attempts }, keys }) => [id, fence + 1, attempts, JSON.stringify(keys)]);
	sql.writeAll(intoHolds, rows);
}

/** A use counts one slice longer, as clocks differ by a millisecond: three workers sent 61 where 60 were allowed. */
const slices = 128;

const intoUses: Insertion = {
	table: 'limit_uses',
	columns: { limit_key: 'TEXT', until: 'BIGINT', count: 'BIGINT' },
	conflict: 'ON CONFLICT (limit_key, until) DO UPDATE SET count = limit_uses.count + excluded.count',
};

function endOf(key: string, at: Micros): Micros {
	const window = windowOf(key);
	const slice = Math.ceil(window / slices);
	return (Math.floor(at / slice) + 2) * slice + window;
}
