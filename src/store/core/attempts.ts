/** The attempt that sent a message has no row where the message has all of it, which saves a fifth of its room. */

import type { CommonReply } from '../../api/campaigns.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { DeliveryAttempt } from '../../api/records.js';
import { type DeliveryOutcome, type Reply, readReplyLine, replyLine } from '../../engine/rules/outcomes.js';
import type { Insertion, Sql } from './sql.js';

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

/** A permanent refusal that is deferred is one of the sender, except a plain 552 (RFC 5321 s.4.5.3.1.10). */
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
