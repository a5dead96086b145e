import { type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import type { MessageState, Uuid } from '../../api/records.js';
import type { Operations } from '../operations.js';
import type { Settlement, UnfinishedMessage } from '../queue.js';
import { column, exists, type Sql } from './sql.js';

const mostDeaths = 3;

const stepBackMicros: Micros = 60 * microsPerSecond;

export function fatalSettlement({ uuid, fence }: Pick<DueMessage, 'uuid' | 'fence'>, at: Micros): Settlement {
	const text = 'a worker ended three times while it prepared this message';
	const reply = { phase: 'mail', code: null, enhanced: null, text } as const;
	return { message: uuid, fence, at, outcome: { kind: 'failed', reply } };
}

export function createCompositions(sql: Sql) {
	return {
		beginComposing: async ({ message, fence }) => {
			sql.write(
				`INSERT INTO compositions (message_id, fence)
				SELECT id, fence
				FROM messages
				WHERE uuid = ? AND fence = ? AND state = 'leased'
				${sql.dialect.lockRows('messages')}
				ON CONFLICT DO NOTHING`,
				[message, fence],
			);
		},
		endComposing: async ({ message, fence }) => {
			sql.write(
				`DELETE FROM compositions
				WHERE message_id = (SELECT id FROM messages WHERE uuid = ?) AND fence <= ?`,
				[message, fence],
			);
		},
	} satisfies Partial<Operations>;
}

export function forgetCompositions(sql: Sql, { id, fence }: { id: number; fence?: number }): void {
	const forgotten = 'DELETE FROM compositions WHERE message_id = ? AND fence = coalesce(?, fence)';
	sql.write(forgotten, [id, fence ?? null]);
}

interface DueMessage {
	id: number;
	uuid: Uuid;
	fence: number;
	state: MessageState;
	attempts: number;
}

export type Judge = (message: DueMessage) => Promise<'free' | 'careful' | 'waits' | 'fatal'>;

/** A lost lease counts against the message that was being composed: it `waits`, and is `fatal` at the third death. */
export async function openCompositions(sql: Sql, now: Micros): Promise<Judge> {
	const hasAny = await exists(sql, 'SELECT 1 FROM compositions');
	return async ({ id, fence, state, attempts }) => {
		const isLost = state === 'leased';
		const composed = 'SELECT fence FROM compositions WHERE message_id = ?';
		const fences = hasAny ? await column<number>(sql, composed, [id]) : [];
		if (!isLost || !fences.includes(fence)) return isLost || fences.length > 0 ? 'careful' : 'free';
		if (fences.length >= mostDeaths) return 'fatal';
		const until = now + stepBackMicros;
		sql.write('UPDATE messages SET state = ?, due_at = ?, wake_at = ?, lease_owner = NULL WHERE id = ?', [
			...[attempts > 0 ? 'deferred' : 'queued', until, until, id],
		]);
		return 'waits';
	};
}

const shownMicros: Micros = 7 * microsPerDay;
const mostShown = 50;

export async function unfinishedMessages(sql: Sql, now: Micros): Promise<UnfinishedMessage[]> {
	const rows = await sql.all<UnfinishedMessage & { last_at: Micros | null }>(
		`SELECT m.uuid AS message, m.state, count(*) AS deaths, m.wake_at AS due_at,
			(SELECT max(at) FROM attempts WHERE message_id = m.id) AS last_at
		FROM compositions c
		-- In this order: SQLite would walk the messages by their id, as the answer is.
		CROSS JOIN messages m
		WHERE m.id = c.message_id AND m.state IN ('queued', 'deferred', 'leased', 'failed')
			AND NOT (m.state = 'leased' AND c.fence = m.fence)
		GROUP BY m.id
		ORDER BY m.id DESC`,
	);
	return rows
		.filter(({ state, last_at }) => state !== 'failed' || (last_at ?? 0) > now - shownMicros)
		.slice(0, mostShown)
		.map(({ last_at: _, ...found }) => found);
}
