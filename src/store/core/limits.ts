/**
 * Limits on sending, shared by all processes: at most N messages in any period of the window's length.
 *
 * A leased message takes one place in each of its limits (`limit_holds`). After the lease, a message that may have been
 * sent counts in `limit_uses` for one window. A message that the worker returns unsent frees its place.
 *
 * A message whose limit is full is set aside: `limit_waiting` names it, and its `wake_at` is `setAside`. `limit_rooms`
 * stores the time at which a lease checks the limit again. The lease wakes only as many messages as the limit allows. A
 * million messages to one domain thus do not delay others.
 */
import { domainOf } from '../../api/address.js';
import type { MessageScope } from '../../api/capabilities.js';
import { type Micros, microsPerSecond } from '../../api/datetime.js';
import {
	type CountedLimit,
	limitOf,
	limitSettings,
	limitsOn,
	parseLimits,
	rateLimit,
	type SendLimit,
	windowOf,
} from '../../engine/rules/settings.js';
import { column, each, exists, type Insertion, parseNames, type Sql, setAside } from './sql.js';

const settingNames = Object.keys(limitSettings)
	.map((name) => `'${name}'`)
	.join(', ');

export async function readLimits(
	sql: Sql,
	perSecond?: number,
): Promise<{ limits: SendLimit[]; isWaiting: boolean }> {
	const rows = await sql.all<{ name: string; value: string }>(
		`SELECT name, value FROM settings WHERE name IN (${settingNames})
		UNION ALL
		SELECT 'waiting', '' WHERE EXISTS (SELECT 1 FROM limit_rooms)`,
	);
	const limits = perSecond === undefined ? [] : [rateLimit(perSecond)];
	for (const [name, scope] of Object.entries(limitSettings)) {
		const parsed = parseLimits(scope, rows.find((row) => row.name === name)?.value ?? '');
		// A later version may have stored limits that this version does not know.
		if (parsed.kind === 'limits') limits.push(...parsed.limits);
	}
	return { limits, isWaiting: rows.some(({ name }) => name === 'waiting') };
}

interface Standing {
	holds: readonly HoldRow[];
	uses: readonly UseRow[];
	/** `waiting`: messages set aside for the limit, including messages canceled since then. */
	rooms: readonly { limit_key: string; waiting: number }[];
}

const mostRooms = 100;

export async function readStanding(sql: Sql, now: Micros): Promise<Standing> {
	const [holds, uses, rooms] = await sql.together([
		() => readHolds(sql),
		() =>
			sql.all<UseRow>(
				`SELECT limit_key, sum(count) AS count, min(until) AS until
				FROM limit_uses
				WHERE limit_key >= 'all ' AND limit_key < 'all!' AND until > ?
				GROUP BY limit_key`,
				[now],
			),
		() =>
			sql.all<Standing['rooms'][number]>(
				`SELECT limit_key, waiting
				FROM limit_rooms
				WHERE room_at <= ?
				ORDER BY room_at, limit_key
				LIMIT ${mostRooms}`,
				[now],
			),
	]);
	return { holds, uses, rooms };
}

export interface Candidate {
	id: number;
	to_key: string;
	fence: number;
	attempts: number;
	type: 'TRANSACTIONAL' | 'BULK';
	sender: string;
}

/** Limits how many messages one lease sets aside or wakes, because other writers wait until the lease ends. */
export const mostAtOnce = 1_000;

export class Limiter {
	readonly #sql: Sql;
	readonly #limits: readonly SendLimit[];
	readonly #rooms: Standing['rooms'];
	readonly #now: Micros;
	readonly #used: Used;
	#aside = 0;
	#isCut = false;

	constructor(sql: Sql, limits: readonly SendLimit[], standing: Standing, now: Micros) {
		this.#sql = sql;
		this.#limits = limits;
		this.#rooms = standing.rooms;
		this.#now = now;
		this.#used = new Used(sql, standing, now);
		this.#used.begin();
	}

	get room(): number {
		return Math.min(...onEverything(this.#limits).map(({ key, count }) => count - this.#used.of(key)));
	}

	/** True if the lease has set aside `mostAtOnce` messages of the lane. The lane may have more due messages. */
	get isLaneFull(): boolean {
		return this.#aside >= mostAtOnce;
	}

	get isCut(): boolean {
		return this.#isCut;
	}

	finish(): void {
		this.#used.finish();
	}

	startLane(): void {
		this.#aside = 0;
	}

	/** Wakes messages whose limit was lifted, and up to `most` for each limit with room. Returns true if any woke. */
	async wake(most: number): Promise<boolean> {
		if (this.#rooms.length === 0) return false;
		const sql = this.#sql;
		await this.#used.read(this.#rooms.map(({ limit_key }) => limit_key));
		const looked = this.#rooms.map(({ limit_key: key, waiting }) => {
			const limit = limitOf(this.#limits, key);
			const room = limit === null ? mostAtOnce : Math.min(most, limit.count - this.#used.of(key));
			return { key, waiting, room, count: limit?.count ?? Number.POSITIVE_INFINITY };
		});
		const woken = await each(sql, looked, async ({ key, room }) => {
			if (room <= 0) return [];
			const next =
				'SELECT message_id FROM limit_waiting WHERE limit_key = ? ORDER BY is_bulk, message_id LIMIT ?';
			return await column<number>(sql, next, [key, room]);
		});
		const ids = JSON.stringify(woken.flat());
		sql.write(`DELETE FROM limit_waiting WHERE ${sql.dialect.oneOf('message_id')}`, [ids]);
		sql.write(
			`UPDATE messages SET wake_at = due_at WHERE ${sql.dialect.oneOf('id')} AND wake_at = ${setAside}`,
			[ids],
		);
		for (const [at, { key, waiting, room, count }] of looked.entries()) {
			const found = woken[at]?.length ?? 0;
			if (room > found || found >= waiting) sql.write('DELETE FROM limit_rooms WHERE limit_key = ?', [key]);
			else
				sql.write('UPDATE limit_rooms SET room_at = ?, waiting = ? WHERE limit_key = ?', [
					this.#used.of(key) + found >= count ? this.#used.roomAt(key) : this.#now,
					waiting - found,
					key,
				]);
		}
		return woken.some(({ length }) => length > 0);
	}

	async admit<One extends Candidate>(candidates: readonly One[], most: number): Promise<One[]> {
		const counted = candidates.map((candidate) => ({
			candidate,
			limits: limitsOn(this.#limits, { sender: candidate.sender, recipient: domainOf(candidate.to_key) }),
		}));
		await this.#used.read(counted.flatMap(({ limits }) => limits.map(({ key }) => key)));
		const taken: { candidate: One; keys: string[] }[] = [];
		const aside: { candidate: One; key: string }[] = [];
		for (const { candidate, limits } of counted) {
			if (taken.length >= most || this.isLaneFull) break;
			const last = this.#lastToHaveRoom(limits);
			if (last === null) {
				const keys = limits.map(({ key }) => key);
				this.#used.take(keys);
				taken.push({ candidate, keys });
				continue;
			}
			aside.push({ candidate, key: last });
			this.#aside += 1;
			this.#isCut ||= this.isLaneFull;
		}
		const holds = taken.flatMap(({ candidate: { id, fence, attempts }, keys }) =>
			keys.length === 0 ? [] : [[id, fence + 1, attempts, JSON.stringify(keys)]],
		);
		this.#sql.writeAll(intoHolds, holds);
		this.#setAside(aside);
		return taken.map(({ candidate }) => candidate);
	}

	#lastToHaveRoom(limits: readonly CountedLimit[]): string | null {
		const full = limits.filter(({ key, count }) => this.#used.of(key) >= count);
		const [last] = full.sort((one, other) => this.#used.roomAt(other.key) - this.#used.roomAt(one.key));
		return last?.key ?? null;
	}

	#setAside(aside: readonly { candidate: Candidate; key: string }[]): void {
		if (aside.length === 0) return;
		this.#sql.write(
			`UPDATE messages
			SET wake_at = ${setAside}, lease_owner = NULL, state = CASE state WHEN 'leased' THEN 'queued' ELSE state END
			WHERE ${this.#sql.dialect.oneOf('id')}`,
			[JSON.stringify(aside.map(({ candidate: { id } }) => id))],
		);
		this.#sql.writeAll(
			intoWaiting,
			aside.map(({ candidate: { id, type }, key }) => [id, key, type === 'BULK' ? 1 : 0]),
		);
		const waiting = new Map<string, number>();
		for (const { key } of aside) waiting.set(key, (waiting.get(key) ?? 0) + 1);
		this.#sql.writeAll(
			intoRooms,
			[...waiting].map(([key, count]) => [key, this.#used.roomAt(key), count]),
		);
	}
}

const intoWaiting: Insertion = {
	table: 'limit_waiting',
	columns: { message_id: 'BIGINT', limit_key: 'TEXT', is_bulk: 'BIGINT' },
	conflict: 'ON CONFLICT (message_id) DO UPDATE SET limit_key = excluded.limit_key',
};

const intoRooms: Insertion = {
	table: 'limit_rooms',
	columns: { limit_key: 'TEXT', room_at: 'BIGINT', waiting: 'BIGINT' },
	conflict: 'ON CONFLICT (limit_key) DO UPDATE SET waiting = limit_rooms.waiting + excluded.waiting',
};

export function onEverything(limits: readonly SendLimit[]): CountedLimit[] {
	return limitsOn(
		limits.filter(({ scope }) => scope === 'all'),
		{ sender: '', recipient: '' },
	);
}

export async function isAnyAside(sql: Sql, scope: MessageScope | null): Promise<boolean> {
	if (scope === null) return true;
	const isAside = `m.wake_at = ${setAside}`;
	if ('submission' in scope) {
		const ofSubmission = 'FROM submissions s JOIN messages m ON m.submission_seq = s.seq WHERE s.id = ?';
		return await exists(sql, `SELECT 1 ${ofSubmission} AND ${isAside}`, [scope.submission]);
	}
	// Uses the index messages_due (lane, wake_at).
	const ofCampaign =
		"FROM campaigns g JOIN messages m ON m.lane = g.seq WHERE g.id = ? AND g.state = 'released'";
	return await exists(sql, `SELECT 1 ${ofCampaign} AND ${isAside}`, [scope.campaign]);
}

export interface UseRow {
	limit_key: string;
	count: number;
	until: Micros;
}

interface HoldRow {
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

/** The longest time that a lease waits for the database after it has read the clock. */
const mostWait: Micros = 10 * microsPerSecond;

/** Returns the latest time at which the message may have been sent. `open`: may still be sent. Null: not sent. */
function usedAt(hold: HoldRow, now: Micros): Micros | 'open' | null {
	const isSame = hold.message_fence === hold.fence;
	// A worker sends nothing after the end of its lease.
	if (hold.state === 'leased' && isSame)
		return hold.wake_at === null || hold.wake_at > now ? 'open' : hold.wake_at;
	// `last_at` is after `now` if this lease waited for the database, or if the clock was set back.
	if ((hold.message_attempts ?? 0) > hold.attempts) return Math.min(hold.last_at ?? now, now + mostWait);
	const waits = hold.state === 'queued' || hold.state === 'deferred';
	return waits && isSame ? null : now;
}

/** If leased messages fill a limit, a lease checks it again soon: a worker may return them unsent. */
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

/**
 * Divides a window into slices. A use counts for the window and at least one more slice, because the clocks of workers
 * differ. Without the extra slice, three workers exceeded a limit.
 */
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
