/** The attempt that sent a message has no row where the message has all of it, which saves a fifth of its room. */
import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { DeliveryAttempt } from '../../api/records.js';
import { type DeliveryOutcome, type Reply, readReplyLine, replyLine } from '../../engine/rules/outcomes.js';
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
