/**
 * Limits on sending, shared by all processes: never more than N messages in any time of the window's length.
 *
 * A message counts from its lease, as a hold. It may be sent at any moment until it is settled or its lease is over, so
 * it goes on counting for one window after that, as a use.
 * Uses are kept by slices of a 128th of the window.
 *
 * A message whose limit is used up is put back with a turn of its own (`wake_at`; `due_at` stays). A million messages
 * to one domain wake one by one as there is room, not all at each lease, and messages behind them do not wait.
 */
import { domainOf } from '../../../api/address.js';
import { type Micros, microsPerSecond } from '../../../api/datetime.js';
import { type CountedLimit, limitsOn, type SendLimit, windowOf } from '../../../engine/rules/limits.js';
import type { Insertion, Sql } from '../sql.js';
import {
	askedKeys,
	createUsed,
	type HoldRow,
	keysAsJson,
	readHolds,
	type Used,
	type UseRow,
	writeHolds,
} from './uses.js';

/** A message that may be leased. */
export interface Candidate {
	id: number;
	to_key: string;
	fence: number;
	attempts: number;
	state: string;
	wake_at: Micros;
	due_at: Micros;
	type: 'TRANSACTIONAL' | 'BULK';
	/** The domain of its sender. */
	sender: string;
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
	/**
	 * Takes candidates in their order, until enough are taken or put back: those that count from now on. Others of them
	 * are put back. Of one batch after the other.
	 */
	admit<One extends Candidate>(candidates: readonly One[], most: number): Promise<One[]>;
	finish(): void;
}

/** In one lane and one lease: other writers wait for the lock. */
const mostPutBack = 1_000;

/** What stands when a lease begins. */
export interface LimitState {
	holds: readonly HoldRow[];
	uses: readonly UseRow[];
}

export async function readLimitState(sql: Sql, now: Micros): Promise<LimitState> {
	const [holds, uses] = await sql.together([
		() => readHolds(sql),
		() =>
			sql.all<UseRow>(
				`SELECT limit_key, sum(count) AS count, min(until) AS until
				FROM limit_uses
				WHERE limit_key >= 'all ' AND limit_key < 'all!' AND until > ?
				GROUP BY limit_key`,
				now,
			),
	]);
	return { holds, uses };
}

/** The limits that every message counts against. */
function onEverything(limits: readonly SendLimit[]): CountedLimit[] {
	return limitsOn(
		limits.filter(({ scope }) => scope === 'all'),
		{ sender: '', recipient: '' },
	);
}

/** While a limit on everything is full of messages under way, any of them may go back unsent. */
const lookAgainAfter: Micros = microsPerSecond;

/** When a lease is worth another try, as far as the limits on everything go. */
export async function nextRoom(sql: Sql, limits: readonly SendLimit[], now: Micros): Promise<Micros> {
	const used = createUsed(sql, await readLimitState(sql, now), now);
	const full = onEverything(limits).filter(({ key, count }) => used.of(key) >= count);
	return Math.max(now, ...full.map(({ key }) => used.firstEnd(key) ?? now + lookAgainAfter));
}

/** `limits` is not empty. */
export function openLimiter(
	sql: Sql,
	limits: readonly SendLimit[],
	{ state, now }: { state: LimitState; now: Micros },
): Limiter {
	const used = createUsed(sql, state, now);
	used.begin();
	const lines = createLines(sql, used, now);
	const room = Math.min(...onEverything(limits).map(({ key, count }) => count - used.of(key)));
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
		admit: async (candidates, most) => {
			const counted = candidates.map((candidate) => ({
				candidate,
				limits: limitsOn(limits, { sender: candidate.sender, recipient: domainOf(candidate.to_key) }),
			}));
			const keys = new Set(counted.flatMap((one) => one.limits.map(({ key }) => key)));
			await sql.together([() => used.read(keys), () => lines.read(keys)]);
			const taken: { candidate: (typeof candidates)[number]; keys: string[] }[] = [];
			for (const { candidate, limits: own } of counted) {
				if (taken.length >= most || putBack >= mostPutBack) break;
				const full = own.filter(({ key, count }) => used.of(key) >= count);
				if (full.length === 0) {
					const names = own.map(({ key }) => key);
					used.addHold(names);
					taken.push({ candidate, keys: names });
					continue;
				}
				putBack += 1;
				isCut ||= putBack >= mostPutBack;
				lines.putBack(candidate, full);
			}
			writeHolds(sql, taken);
			lines.write();
			return taken.map(({ candidate }) => candidate);
		},
		finish: () => {
			used.finish();
			lines.finish();
		},
	};
}

/** `Name <news@example.com>` and what stands in a sender's limit for it. */
export function senderDomain(from: string): string {
	return domainOf(from.replace(/>\s*$/, ''));
}

const intoLines: Insertion = {
	table: 'limit_lines',
	columns: { limit_key: 'TEXT', line: 'BIGINT', next_turn: 'BIGINT' },
	key: 'limit_key',
	id: 'line',
	conflict: 'ON CONFLICT (limit_key, line) DO UPDATE SET next_turn = excluded.next_turn',
};

/** Messages that wait for a limit, and when the next of them gets a turn. */
function createLines(sql: Sql, used: Used, now: Micros) {
	const stored = new Map<string, Micros>();
	const read = new Set<string>();
	const turns = new Map<string, { key: string; line: number; next: Micros }>();
	const back = new Map<number, Micros>();
	const turnOf = ({ key, count, window }: CountedLimit, line: number) => {
		const name = `${line} ${key}`;
		const turn =
			turns.get(name)?.next ?? Math.max(stored.get(name) ?? 0, used.firstEnd(key) ?? now + windowOf(key));
		turns.set(name, { key, line, next: turn + Math.ceil(window / count) });
		return turn;
	};
	return {
		read: async (keys: ReadonlySet<string>) => {
			const fresh = [...keys].filter((key) => !read.has(key));
			if (fresh.length === 0) return;
			for (const key of fresh) read.add(key);
			const rows = await sql.all<{ limit_key: string; line: number; next_turn: Micros }>(
				`SELECT l.limit_key, l.line, l.next_turn
				FROM ${sql.dialect.table(askedKeys, 'asked')}
				CROSS JOIN limit_lines l
				WHERE l.limit_key = asked.wanted`,
				keysAsJson(fresh),
			);
			for (const { limit_key, line, next_turn } of rows) stored.set(`${line} ${limit_key}`, next_turn);
		},
		putBack: (candidate: Candidate, full: readonly CountedLimit[]) => {
			const line = lineOf(candidate);
			let turn: Micros = 0;
			for (const limit of full) turn = Math.max(turn, turnOf(limit, line));
			back.set(candidate.id, turn);
		},
		/** The messages that were put back. */
		write: () => {
			if (back.size === 0) return;
			sql.write(
				`UPDATE messages
				SET wake_at = back.turn, lease_owner = NULL, state = CASE state WHEN 'leased' THEN 'queued' ELSE state END
				FROM ${sql.dialect.table({ message: 'BIGINT', turn: 'BIGINT' }, 'back')}
				WHERE id = back.message`,
				JSON.stringify([...back].map(([message, turn]) => ({ message, turn }))),
			);
			back.clear();
		},
		finish: () => {
			const rows = [...turns.values()].map(({ key, line, next }) => [key, line, next]);
			sql.writeAll(intoLines, rows);
			sql.write('DELETE FROM limit_lines WHERE next_turn <= ?', now);
		},
	};
}

/** A message that waited and found no room at its turn does not go to the end of the line. */
function lineOf({ type, state, wake_at, due_at }: Candidate): number {
	const hasWaited = state !== 'leased' && wake_at > due_at;
	return (type === 'BULK' ? 1 : 0) + (hasWaited ? 2 : 0);
}
