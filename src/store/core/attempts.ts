/** A successful attempt gets no row if its message's row holds the same data. This saves a fifth of the disk usage. */
import type { CommonReply } from '../../api/campaigns.js';
import { formatDateTime, type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import type { DeliveryAttempt, MessageState, Uuid } from '../../api/records.js';
import { type DeliveryOutcome, type Reply, readReplyLine, replyLine } from '../../engine/rules/outcomes.js';
import type { Operations } from '../operations.js';
import type { Settlement, UnfinishedMessage } from '../queue.js';
import { column, exists, type Insertion, type Sql } from './sql.js';

interface Attempt {
	id: number;
	number: number;
	kind: DeliveryOutcome['kind'];
	at: Micros;
	reply: Reply;
}

const intoAttempts: Insertion = {
	table: 'attempts',
	columns: {
		...{ message_id: 'BIGINT', number: 'BIGINT', at: 'BIGINT', outcome: 'TEXT', phase: 'TEXT' },
		...{ code: 'BIGINT', enhanced: 'TEXT', text: 'TEXT' },
	},
	conflict: 'ON CONFLICT (message_id, number) DO NOTHING',
};

export function writeAttempts(sql: Sql, attempts: readonly Attempt[]): void {
	const wanted = attempts.filter(({ kind, reply }) => kind !== 'sent' || !isInLine(reply));
	write(sql, wanted);
}

function write(sql: Sql, attempts: readonly Attempt[]): void {
	const rows = attempts.map(({ id, number, at, kind, reply }) => [
		...[id, number, at, kind, reply.phase],
		...[reply.code, reply.enhanced, reply.text],
	]);
	sql.writeAll(intoAttempts, rows);
}

function isInLine({ phase, code, enhanced, text }: Reply): boolean {
	const read = readReplyLine(replyLine({ phase, code, enhanced, text }));
	return read.phase === phase && read.code === code && read.enhanced === enhanced && read.text === text;
}

export interface SentMessage {
	id: number;
	attempts: number;
	sent_at: Micros | null;
	last_reply: string | null;
	courier: string | null;
}

export async function attemptsOf(sql: Sql, message: SentMessage): Promise<DeliveryAttempt[]> {
	const rows = await sql.all<Omit<DeliveryAttempt, 'at'> & { at: Micros }>(
		`SELECT number, at, outcome, phase, code, enhanced, text
		FROM attempts
		WHERE message_id = ?
		ORDER BY number`,
		[message.id],
	);
	const sent = sentAttempt(message);
	if (sent !== null && rows.every(({ number }) => number !== sent.number)) {
		const { phase, code, enhanced, text } = sent.reply;
		rows.push({ number: sent.number, at: sent.at, outcome: 'sent', phase, code, enhanced, text });
	}
	return rows.map((row) => ({ ...row, at: formatDateTime(row.at) }));
}

function sentAttempt({ id, attempts, sent_at, last_reply, courier }: SentMessage): Attempt | null {
	if (sent_at === null || last_reply === null || courier === 'api') return null;
	return { id, number: attempts, kind: 'sent', at: sent_at, reply: readReplyLine(last_reply) };
}

export function keepAttempt(sql: Sql, message: SentMessage): void {
	const sent = sentAttempt(message);
	if (sent !== null) write(sql, [sent]);
}

const mostTexts = 10_000;
const mostReplies = 5;

/** Matches deferred messages whose 5xx reply refuses the sender. A plain 552 is temporary (RFC 5321 s.4.5.3.1.10). */
export const isSendersRefusal =
	"(m.last_reply LIKE '5%' AND (m.last_reply NOT LIKE '552 %' OR m.last_reply LIKE '552 5.%'))";

export async function commonReplies(
	sql: Sql,
	condition: string,
	...values: readonly (string | number)[]
): Promise<CommonReply[]> {
	const selected = 'SELECT state, last_reply, to_email, to_key FROM messages';
	const rows = await sql.all<CommonReply>(
		`SELECT state, reply, count(*) AS count
		FROM (
			SELECT state, replace(replace(last_reply, to_email, '…'), to_key, '…') AS reply
			FROM (
				${selected}
				WHERE ${condition} AND wake_at IS NULL AND state <> 'sent' AND state IN ('failed', 'bounced')
				UNION ALL
				${selected}
				WHERE ${condition} AND wake_at IS NOT NULL AND state = 'deferred'
					AND NOT EXISTS (SELECT 1 FROM campaigns g WHERE g.seq = lane AND g.state = 'canceled')
			) m
			WHERE last_reply IS NOT NULL
		) r
		GROUP BY state, reply
		ORDER BY 3 DESC, 2, 1
		LIMIT ${mostTexts}`,
		[...values, ...values],
	);
	const found = new Map<string, CommonReply>();
	for (const { state, reply, count } of rows) {
		const words = reply.split(' ').filter((word) => word.length < 8 || !/\d/.test(word));
		const name = `${state} ${words.join(' ')}`;
		found.set(name, { state, reply, ...found.get(name), count: count + (found.get(name)?.count ?? 0) });
	}
	return [...found.values()].sort((one, other) => other.count - one.count).slice(0, mostReplies);
}

const mostDeaths = 3;

const stepBackMicros: Micros = 60 * microsPerSecond;

export function fatalSettlement({ uuid, fence }: Pick<DueMessage, 'uuid' | 'fence'>, at: Micros): Settlement {
	const text = 'composing this message ended a worker three times';
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

/** A lease that ends during composition means a crash. */
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
		-- CROSS JOIN makes SQLite start with the small table compositions. Otherwise it scans all messages by id.
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
