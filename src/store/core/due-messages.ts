/** Messages that are due, and what a worker needs of each: read as rows, with what their submissions share. */

import { domainOf, type EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { MessageState } from '../../api/records.js';
import { withOwn } from '../../api/variables.js';
import { joinVariables } from '../../engine/rules/meta.js';
import type { Leased } from '../queue.js';
import { parseTexts, parseUsed, readEnvelope } from './rows.js';
import type { Sql, SqlValue } from './sql.js';
import { stoppedCopies } from './submissions.js';

export interface DueRow {
	id: number;
	uuid: string;
	submission_seq: number;
	to_email: string;
	to_key: string;
	list_id: number | null;
	subscriber_id: number | null;
	variables: string;
	attempts: number;
	fence: number;
	called: number | null;
	lease_owner: string | null;
	state: MessageState;
	created_at: Micros;
	is_active: number | null;
	disable_reason: string | null;
}

const columns = `m.id, m.uuid, m.submission_seq, m.to_email, m.to_key, m.list_id, m.subscriber_id, m.variables,
	m.attempts, m.fence, m.called, m.lease_owner, m.state, m.created_at, p.is_active, p.disable_reason`;

/** Due messages with their subscribers, at most `limit`, of what `messages` names: its values go before the limit. */
export async function readDue(
	sql: Sql,
	{ messages, order, values }: { messages: string; order: readonly string[]; values: readonly SqlValue[] },
	limit: number,
): Promise<DueRow[]> {
	// The limit goes before the join.
	return await sql.all<DueRow>(
		`SELECT ${columns}
		FROM (SELECT * FROM messages ${messages} ORDER BY ${order.join(', ')} LIMIT ? ${sql.dialect.skipLocked}) m
		LEFT JOIN subscribers p ON p.id = m.subscriber_id
		ORDER BY ${order.map((column) => `m.${column}`).join(', ')}`,
		...values,
		limit,
	);
}

/** What the messages of a submission share. */
export interface Shared {
	id: string;
	type: 'TRANSACTIONAL' | 'BULK';
	/** The domain of the sender. */
	sender: string;
	/** The variables that the context gives to every message of the submission. */
	variables: Record<string, string>;
	released_at: Micros | null;
	starts_at: Micros | null;
	send_window: string | null;
	stopped: EmailKey[];
	/**
	 * Goes by an API, in calls of all messages without variables of their own (`shared`), or a request for each (`own`).
	 */
	calls: 'shared' | 'own' | null;
}

/** Reads the submissions of messages that are not known yet. */
export async function readShared(
	sql: Sql,
	known: Map<number, Shared>,
	rows: readonly DueRow[],
	now: Micros,
): Promise<void> {
	const seqs = [...new Set(rows.map(({ submission_seq }) => submission_seq))].filter(
		(seq) => !known.has(seq),
	);
	const read = await sql.together(seqs.map((seq) => async () => await readSubmission(sql, seq, now)));
	for (const [at, submission] of read.entries())
		if (submission !== null) known.set(seqs[at] ?? 0, submission);
}

async function readSubmission(sql: Sql, seq: number, now: Micros): Promise<Shared | null> {
	const row = await sql.get<{
		id: string;
		type: 'TRANSACTIONAL' | 'BULK';
		context: string;
		variables: string;
		envelope: string;
		released_at: Micros | null;
		starts_at: Micros | null;
		send_window: string | null;
		calls: Shared['calls'];
	}>(
		`SELECT s.id, s.type, s.context, s.variables, s.envelope, g.released_at,
			g.starts_at, g.send_window,
			CASE WHEN s.request IS NULL THEN NULL WHEN g.requests = 1 THEN 'own' ELSE 'shared' END AS calls
		FROM submissions s
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE s.seq = ?`,
		seq,
	);
	if (row === undefined) return null;
	const { id, type, released_at, starts_at, send_window, calls } = row;
	const variables = joinVariables({}, parseUsed(row.variables), parseTexts(row.context));
	const envelope = readEnvelope(row.envelope);
	// `Name <news@example.com>`
	const sender = domainOf(envelope.from.replace(/>\s*$/, ''));
	const stopped = await stoppedCopies(sql, envelope, now);
	return { id, type, sender, released_at, starts_at, send_window, variables, stopped, calls };
}

/** As the worker gets it. */
export async function toLeased(
	sql: Sql,
	row: DueRow,
	submission: Shared,
	command: { now: Micros; leave_by?: Micros | null },
): Promise<Leased> {
	const { leave_by = null } = command;
	return {
		message: row.uuid,
		fence: row.fence + 1,
		submission: submission.id,
		to: row.to_email,
		list_id: row.list_id,
		variables: withOwn(submission.variables, parseTexts(row.variables)),
		attempts: row.attempts,
		...(mayShare(row, submission) && { call: submission.id }),
		...(submission.stopped.length > 0 && { stopped_copies: submission.stopped }),
		...(leave_by !== null && { leave_by }),
		created_at: await beganAt(sql, row, submission, command),
	};
}

/**
 * The time from which tries are counted, and the date of the mail: the release. Where a window holds messages back for
 * days, it is their first try.
 */
async function beganAt(
	sql: Sql,
	{ id, created_at }: DueRow,
	{ released_at, starts_at, send_window }: Shared,
	{ now }: { now: Micros },
): Promise<Micros> {
	if (send_window === null) return Math.max(released_at ?? created_at, starts_at ?? 0);
	const first = await sql.get<{ at: Micros }>(
		'SELECT at FROM attempts WHERE message_id = ? AND number = 1',
		id,
	);
	return first?.at ?? now;
}

function mayShare({ variables }: DueRow, { calls }: Shared): boolean {
	return calls === 'own' || (calls === 'shared' && variables === '{}');
}
