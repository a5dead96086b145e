/**
 * Attempts of messages. The one that sent a message has no row where the message has all of it: the number, the time and
 * the reply in a line. That is nearly every attempt, and a fifth of the room of a message.
 */
import type { Micros } from '../../api/datetime.js';
import type { DeliveryAttempt } from '../../api/records.js';
import { type DeliveryOutcome, type Reply, readReplyLine, replyLine } from '../../engine/rules/outcomes.js';
import { type AttemptRow, toAttempt } from './rows.js';
import type { Insertion, Sql } from './sql.js';

export interface Attempt {
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
	key: 'message_id',
	id: 'message_id',
	conflict: 'ON CONFLICT (message_id, number) DO NOTHING',
};

export function writeAttempts(sql: Sql, attempts: readonly Attempt[]): void {
	write(
		sql,
		attempts.filter(({ kind, reply }) => kind !== 'sent' || !isInLine(reply)),
	);
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
	const rows = await sql.all<AttemptRow>(
		`SELECT number, at, outcome, phase, code, enhanced, text
		FROM attempts
		WHERE message_id = ?
		ORDER BY number`,
		[message.id],
	);
	const sent = sentAttempt(message);
	const isKept = sent === null || rows.some(({ number }) => number === sent.number);
	return (isKept ? rows : [...rows, { ...sent, outcome: 'sent' as const, ...sent.reply }]).map(toAttempt);
}

function sentAttempt({ id, attempts, sent_at, last_reply, courier }: SentMessage): Attempt | null {
	if (sent_at === null || last_reply === null || courier === 'api') return null;
	return { id, number: attempts, kind: 'sent', at: sent_at, reply: readReplyLine(last_reply) };
}

export async function keepSentAttempt(sql: Sql, id: number): Promise<void> {
	const message = await sql.get<SentMessage>(
		`SELECT m.id, m.attempts, m.sent_at, m.last_reply, g.courier
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE m.id = ?`,
		[id],
	);
	if (message !== undefined) keepAttempt(sql, message);
}

export function keepAttempt(sql: Sql, message: SentMessage): void {
	const sent = sentAttempt(message);
	if (sent !== null) write(sql, [sent]);
}
